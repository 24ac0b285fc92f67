// SPDX-License-Identifier: Apache-2.0
// A fetch that is stopped, doubled or served the wrong file leaves nothing broken: with a copy of these scripts, a pin of a small wheel, and
// an index on this machine.

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

const able = ['python3 -m pip', 'flock'].every(
  (tool) => spawnSync('sh', ['-c', `${tool} --version`]).status === 0,
);
const component = 'clang-format';
const program = '#!/bin/sh\necho works\n';

describe.skipIf(!able)('third_party/fetch', () => {
  let folder;
  let cache;
  let wheel;
  let pin;
  let index;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nccl-ext-fetch-'));
    await cp(dirname(fileURLToPath(import.meta.url)), join(folder, 'third_party'), { recursive: true });
    const pinsFile = join(folder, 'third_party/pins.json');
    const pins = JSON.parse(await readFile(pinsFile, 'utf8'));
    [pin] = pins[component].files;
    wheel = await makeWheel(pin);
    pin.sha256 = createHash('sha256').update(wheel).digest('hex');
    await writeFile(pinsFile, JSON.stringify(pins));
  });
  beforeEach(async () => {
    cache = await mkdtemp(join(folder, 'cache-'));
    index = await serve(wheel);
    return () => index.close();
  });
  afterAll(() => rm(folder, { recursive: true, force: true }), 60_000);

  const tool = () => join(cache, `nccl-ext/toolkits/${component}-${pin.version}/bin/clang-format`);
  const archive = () => join(cache, 'nccl-ext/downloads', pin.file);
  const lying = () => readdir(join(cache, 'nccl-ext/toolkits'));

  it('brings a component once, for two that ask at the same time', async () => {
    const both = await Promise.all([fetch().ended, fetch().ended]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(index.served).toBe(1);
    expect(spawnSync(tool()).stdout.toString()).toBe('works\n');
    expect(existsSync(archive())).toBe(false);
    expect((await fetch().ended).text).toContain('already there');
    expect(index.served).toBe(1);
  });

  it('goes on after a run that was killed, and cleans up behind it', async () => {
    index.silent = true;
    const run = fetch();
    await index.asked;
    process.kill(-run.pid, 'SIGKILL');
    await run.ended;
    expect(existsSync(tool())).toBe(false);
    const rest = join(dirname(dirname(tool())), `../${component}-${pin.version}.fetch-killed`);
    await mkdir(join(rest, 'bin'), { recursive: true });
    await mkdir(dirname(archive()), { recursive: true });
    await writeFile(archive(), wheel.subarray(0, 100));
    index.silent = false;
    expect(await fetch().ended).toMatchObject({ code: 0 });
    expect(spawnSync(tool()).stdout.toString()).toBe('works\n');
    expect(await lying()).toEqual([`${component}-${pin.version}`]);
  });

  it('refuses a file with another sum, and keeps nothing of it', async () => {
    index.wheel = await makeWheel(pin, 'other');
    const { code, text } = await fetch().ended;
    expect(code).toBe(1);
    expect(text).toContain(`the pin says ${pin.sha256}. The file was removed.`);
    expect(existsSync(archive())).toBe(false);
    expect(existsSync(tool())).toBe(false);
  });

  it('does not bring again what was brought and not unpacked', async () => {
    await mkdir(dirname(archive()), { recursive: true });
    await writeFile(archive(), wheel);
    expect(await fetch('--keep-downloads').ended).toMatchObject({ code: 0 });
    expect(index.served).toBe(0);
    expect(existsSync(archive())).toBe(true);
  });

  /** One run in a process group of its own. */
  function fetch(...flags) {
    const env = {
      ...{ PATH: process.env.PATH, HOME: process.env.HOME, XDG_CACHE_HOME: cache },
      ...{ PIP_CONFIG_FILE: '/dev/null', PIP_INDEX_URL: index.url, PIP_NO_CACHE_DIR: '1', PIP_RETRIES: '0' },
    };
    const child = spawn(process.execPath, [join(folder, 'third_party/fetch.mjs'), component, ...flags], {
      ...{ env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text += part));
    const ended = new Promise((resolve) => child.on('close', (code) => resolve({ code, text })));
    return { pid: child.pid, ended };
  }

  async function makeWheel({ file, name, version }, more = '') {
    const tree = await mkdtemp(join(folder, 'tree-'));
    const facts = `${name.replace('-', '_')}-${version}.dist-info`;
    const files = {
      'clang_format/data/bin/clang-format': `${program}${more}`,
      [`${facts}/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`,
      [`${facts}/WHEEL`]: 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
      [`${facts}/RECORD`]: '',
    };
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(tree, path)), { recursive: true });
      await writeFile(join(tree, path), text);
    }
    spawnSync('python3', ['-m', 'zipfile', '-c', file, 'clang_format', facts], { cwd: tree });
    return readFile(join(tree, file));
  }

  /** A package index (PEP 503) with one wheel; while `silent` it never answers for the wheel. */
  async function serve(first) {
    let onAsked;
    const asked = new Promise((resolve) => (onAsked = resolve));
    const served = { wheel: first, served: 0, silent: false, asked };
    const server = createServer(({ url }, response) => {
      const page = `<a href="/files/${pin.file}">${pin.file}</a>`;
      if (url === `/simple/${pin.name}/`) response.setHeader('content-type', 'text/html').end(page);
      else if (url !== `/files/${pin.file}`) response.writeHead(404).end();
      else {
        served.served += 1;
        onAsked();
        if (!served.silent) response.end(served.wheel);
      }
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    served.url = `http://127.0.0.1:${server.address().port}/simple`;
    served.close = () => {
      server.closeAllConnections();
      server.close();
    };
    return served;
  }
});
