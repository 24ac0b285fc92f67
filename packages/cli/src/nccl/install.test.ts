// SPDX-License-Identifier: Apache-2.0
// NCCL lands whole where the backends look, or the cache stays as it was; with a small wheel and an index on this machine.

import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type FakeIndex,
  hasPip,
  libraryText,
  serveIndex,
  sha256,
  writeFakeWheel,
} from './fake-wheel.test-util.js';
import { type Installation, type Installed, installNccl } from './install.js';
import type { NcclPin } from './pins.js';

describe.skipIf(!hasPip)('nccl install', () => {
  let folder: string;
  let cache: string;
  let wheel: string;
  let pin: NcclPin;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nccl-ext-install-'));
    ({ path: wheel, pin } = await writeFakeWheel(folder));
  });
  beforeEach(async () => {
    cache = await mkdtemp(join(folder, 'cache-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  function install(more: Partial<Installation> = {}): Promise<Installed> {
    const { signal } = new AbortController();
    const env = { ...process.env, XDG_CACHE_HOME: cache, PIP_NO_CACHE_DIR: '1', PIP_RETRIES: '0' };
    const say = (): void => {};
    return installNccl({ pin, file: undefined, indexUrl: undefined, env, signal, say, ...more });
  }

  const toolkits = (): string => join(cache, 'nccl-ext', 'toolkits');
  const left = (): Promise<string[]> => readdir(toolkits()).catch(() => []);

  async function withIndex(
    served: Uint8Array | 'silent',
    use: (index: FakeIndex) => Promise<void>,
  ): Promise<void> {
    const index = await serveIndex(pin, served);
    try {
      await use(index);
    } finally {
      await index.close();
    }
  }

  it('brings the wheel from an index, and does nothing the second time', async () => {
    await withIndex(await readFile(wheel), async ({ url }) => {
      const library = join(toolkits(), 'nccl-cu13-2.30.7', 'lib', 'libnccl.so.2');
      expect(await install({ indexUrl: url })).toEqual({ library, alreadyThere: false });
      expect(await readFile(library, 'utf8')).toBe(libraryText);
    });
    const again = await install({ env: { XDG_CACHE_HOME: cache, PATH: '' } });
    expect(again.alreadyThere).toBe(true);
    const files = await readdir(toolkits(), { recursive: true });
    expect(files).toContain('nccl-cu13-2.30.7/nvidia_nccl_cu13-2.30.7.dist-info/licenses/License.txt');
    expect(files.some((name) => name.includes('include'))).toBe(false);
    expect(await left()).toEqual(['nccl-cu13-2.30.7']);
  });

  it('takes a file, and mends a library that was damaged', async () => {
    const { library } = await install({ file: wheel });
    await writeFile(library, 'damaged');
    expect(await install({ file: wheel })).toEqual({ library, alreadyThere: false });
    expect(await readFile(library, 'utf8')).toBe(libraryText);
    expect(await left()).toEqual(['nccl-cu13-2.30.7']);
  });

  it('works twice at once', async () => {
    const both = await Promise.all([install({ file: wheel }), install({ file: wheel })]);
    expect(both[0]!.library).toBe(both[1]!.library);
    expect(await left()).toEqual(['nccl-cu13-2.30.7']);
  });

  it('refuses another wheel with both sums', async () => {
    const other = join(folder, 'other.whl');
    await writeFile(other, 'another wheel');
    const sums = { expected: pin.sha256, seen: sha256(await readFile(other)) };
    await expect(install({ file: other })).rejects.toMatchObject({ code: 'ERR_INVALID_ARGUMENT', ...sums });
    // pip itself wants a sound wheel, so this one is sound and of another sum.
    await withIndex(await readFile(wheel), async ({ url }) => {
      const wanted = { ...pin, sha256: '0'.repeat(64) };
      await expect(install({ pin: wanted, indexUrl: url })).rejects.toMatchObject({
        code: 'ERR_VERIFY',
        expected: wanted.sha256,
        seen: pin.sha256,
        message: expect.stringContaining(pin.sha256),
      });
    });
    expect(await left()).toEqual([]);
  });

  it('refuses what cannot be unpacked', async () => {
    const broken = join(folder, 'broken.whl');
    const bytes = (await readFile(wheel)).subarray(0, 300);
    await writeFile(broken, bytes);
    const pinned = { ...pin, sha256: sha256(bytes) };
    await expect(install({ pin: pinned, file: broken })).rejects.toMatchObject({
      code: 'ERR_VERIFY',
      message: expect.stringContaining('BadZipFile'),
    });
    expect(await left()).toEqual([]);
  });

  it('says what pip said when the index does not have it', async () => {
    await withIndex(await readFile(wheel), async ({ url }) => {
      await expect(install({ indexUrl: `${url}/nothing` })).rejects.toMatchObject({
        code: 'ERR_NCCL_NOT_FOUND',
        message: expect.stringMatching(/pip could not bring nvidia-nccl-cu13 2\.30\.7: .*ERROR/s),
        help: expect.stringContaining('--file'),
      });
    });
    expect(await left()).toEqual([]);
  });

  it('takes no other version than the pinned one, and nothing else from the index', async () => {
    await withIndex(await readFile(wheel), async ({ url }) => {
      const wanted = { ...pin, version: '2.30.8' };
      await expect(install({ pin: wanted, indexUrl: url })).rejects.toMatchObject({
        code: 'ERR_NCCL_NOT_FOUND',
        message: expect.stringMatching(/pip could not bring nvidia-nccl-cu13 2\.30\.8: .*2\.30\.8/s),
      });
    });
    expect(await left()).toEqual([]);
  });

  it('takes no part of a wheel for a wheel', async () => {
    await withIndex((await readFile(wheel)).subarray(0, 300), async ({ url }) => {
      await expect(install({ indexUrl: url })).rejects.toMatchObject({
        code: expect.stringMatching(/^ERR_(NCCL_NOT_FOUND|VERIFY)$/),
        message: expect.stringContaining('nvidia'),
      });
    });
    expect(await left()).toEqual([]);
  });

  it("uses the index of pip's own configuration when none is named", async () => {
    await withIndex(await readFile(wheel), async ({ url }) => {
      const configuration = join(folder, 'pip.conf');
      await writeFile(configuration, `[global]\nindex-url = ${url}\n`);
      const env = { ...process.env, XDG_CACHE_HOME: cache, PIP_NO_CACHE_DIR: '1', PIP_RETRIES: '0' };
      const { alreadyThere } = await install({ env: { ...env, PIP_CONFIG_FILE: configuration } });
      expect(alreadyThere).toBe(false);
    });
    expect(await left()).toEqual(['nccl-cu13-2.30.7']);
  });

  it('says what to do without Python, and without pip', async () => {
    const env = { XDG_CACHE_HOME: cache, PATH: '' };
    for (const file of [undefined, wheel]) {
      await expect(install({ env, file })).rejects.toMatchObject({
        code: 'ERR_NCCL_NOT_FOUND',
        help: expect.stringContaining('Install Python 3'),
      });
    }
    const tools = join(folder, 'tools');
    await mkdir(tools);
    const script = '#!/bin/sh\necho "/usr/bin/python3: No module named pip" >&2\nexit 1\n';
    await writeFile(join(tools, 'python3'), script, { mode: 0o755 });
    await expect(install({ env: { ...env, PATH: tools } })).rejects.toMatchObject({
      code: 'ERR_NCCL_NOT_FOUND',
      help: expect.stringContaining('--file'),
    });
    expect(await left()).toEqual([]);
  });

  it('leaves nothing behind when it is interrupted', async () => {
    await withIndex('silent', async ({ url, asked }) => {
      const controller = new AbortController();
      const running = install({ indexUrl: url, signal: controller.signal });
      await asked;
      controller.abort(new Error('enough'));
      await expect(running).rejects.toThrow('enough');
    });
    expect(await left()).toEqual([]);
  });
});
