// SPDX-License-Identifier: Apache-2.0
// A wheel with the shape of NVIDIA's and a few bytes inside, and an index on this machine that has it.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type NcclPin, ncclPins } from './pins.js';

export const libraryText = 'not a library, but the bytes of one\n';

/** Without them nothing can be installed, and nothing be tested. */
export const hasPip = spawnSync('python3', ['-m', 'pip', '--version']).status === 0;

/** Writes the wheel into `folder`, and gives its path with the pin that it fulfils. */
export async function writeFakeWheel(folder: string): Promise<{ path: string; pin: NcclPin }> {
  const real = ncclPins[13];
  const facts = 'nvidia_nccl_cu13-2.30.7.dist-info';
  const sum = createHash('sha256').update(libraryText).digest('base64url');
  const library = 'nvidia/nccl/lib/libnccl.so.2';
  const files: Record<string, string> = {
    [library]: libraryText,
    'nvidia/nccl/include/nccl.h': '// for who compiles\n',
    [`${facts}/METADATA`]: `Metadata-Version: 2.1\nName: ${real.name}\nVersion: ${real.version}\n`,
    [`${facts}/WHEEL`]: 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-manylinux_2_18_x86_64\n',
    [`${facts}/RECORD`]: `${library},sha256=${sum},${libraryText.length}\n`,
    [`${facts}/licenses/License.txt`]: 'a licence\n',
  };
  const tree = join(folder, 'tree');
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(tree, name, '..'), { recursive: true });
    await writeFile(join(tree, name), text);
  }
  const path = join(folder, real.file);
  const zip = spawnSync('python3', ['-m', 'zipfile', '-c', path, 'nvidia', facts], { cwd: tree });
  if (zip.status !== 0) throw new Error(`no wheel: ${zip.stderr}`);
  return { path, pin: { ...real, sha256: sha256(await readFile(path)) } };
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export interface FakeIndex {
  /** For --index-url. */
  readonly url: string;
  /** Resolves when the wheel is asked for. */
  readonly asked: Promise<void>;
  close(): Promise<void>;
}

/** A simple index (PEP 503) with one wheel; `silent` never answers for the wheel. */
export async function serveIndex({ name, file }: NcclPin, wheel: Uint8Array | 'silent'): Promise<FakeIndex> {
  let onAsked = (): void => {};
  const asked = new Promise<void>((resolve) => {
    onAsked = resolve;
  });
  const server: Server = createServer(({ url }, response) => {
    if (url === `/simple/${name}/`) {
      response.setHeader('content-type', 'text/html').end(`<a href="/files/${file}">${file}</a>`);
    } else if (url !== `/files/${file}`) response.writeHead(404).end();
    else {
      onAsked();
      if (wheel !== 'silent') response.end(wheel);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/simple`,
    asked,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
