// SPDX-License-Identifier: Apache-2.0
// What `bench m2n` measures follows the backend that was chosen in the end, and `--sms` and `--sweep` name the same things.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { version } from '@nccl-ext/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Arguments } from '../arguments/arguments.js';
import { ProgressLine } from '../output/progress-line.js';
import { type M2nInput, m2nArguments, readM2nInput } from './m2n-input.js';

const start = process.cwd();
const folder = mkdtempSync(join(tmpdir(), 'nccl-ext-m2n-input-'));
const home = join(folder, 'node_modules/@nccl-ext/cuda13');

beforeAll(() => {
  mkdirSync(home, { recursive: true });
  const manifest = { name: '@nccl-ext/cuda13', version, main: 'a.cjs' };
  writeFileSync(join(home, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(home, 'a.cjs'), 'exports.buildInfo = {}; exports.load = () => ({});');
  process.chdir(folder);
});
afterAll(() => {
  process.chdir(start);
  rmSync(folder, { recursive: true });
});

function read(args: readonly string[], env: Record<string, string> = {}): Promise<M2nInput> {
  return readM2nInput({
    arguments: new Arguments(m2nArguments, args),
    commandLine: '',
    env,
    signal: new AbortController().signal,
    progress: new ProgressLine({ write: () => {} }),
  });
}

describe('the backend', () => {
  it.each([
    [[], {}, 'device', 2 ** 30],
    [['--backend', 'auto'], { NCCL_EXT_BACKEND: 'embedded' }, 'device', 2 ** 30],
    [['--backend', 'cuda'], {}, 'device', 2 ** 30],
    [['--backend', 'embedded'], {}, 'host', 2 ** 28],
    [[], { NCCL_EXT_BACKEND: 'embedded' }, 'host', 2 ** 28],
    [['--backend', 'embedded', '--bytes', '16MiB'], {}, 'host', 2 ** 24],
  ])('%j and %j decide kind and size', async (args, env, kind, bytes) => {
    expect(await read(args, env)).toMatchObject({ kind, sizes: [bytes] });
  });

  it('has the workers that the environment says', async () => {
    const env = { NCCL_EXT_BACKEND: 'embedded', NCCL_EXT_WORKERS: '3' };
    expect(await read([], env)).toMatchObject({ workers: 3 });
    expect(await read(['--workers', '2'], env)).toMatchObject({ workers: 2 });
  });
});

describe('SMs', () => {
  it.each([
    [[], [undefined]],
    [['--sms', '8'], [{ senders: 8, receivers: 8 }]],
    [['--sms', '28,4'], [{ senders: 28, receivers: 4 }]],
    [['--sms', '0'], [{ senders: 0, receivers: 0 }]],
    [
      ['--sweep', 'default,0,28+4'],
      [undefined, { senders: 0, receivers: 0 }, { senders: 28, receivers: 4 }],
    ],
  ])('%j', async (args, settings) => {
    expect(await read(args)).toMatchObject({ settings });
  });

  it('are one number where a launcher starts the ranks', async () => {
    const ranks = { RANK: '0', LOCAL_RANK: '0', WORLD_SIZE: '2', LOCAL_WORLD_SIZE: '2' };
    const env = { ...ranks, MASTER_ADDR: 'localhost', MASTER_PORT: '29500' };
    expect(await read(['--sms', '0'], env)).toMatchObject({ kind: 'device', settings: [{ senders: 0 }] });
    await expect(read(['--sms', '28,4'], env)).rejects.toThrow('--sms is "28,4"');
    await expect(read(['--sweep', 'default,0'], env)).rejects.toThrow('--sweep is "default,0"');
  });
});
