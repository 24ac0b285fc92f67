// SPDX-License-Identifier: Apache-2.0
// Commands that move bytes choose the same backend: the one that is asked for, else the installed GPU backend, else the embedded one.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '@nccl-ext/core';
import { afterAll, describe, expect, it } from 'vitest';

const bin = fileURLToPath(new URL('../bin/nccl-ext.mjs', import.meta.url));
const bare = mkdtempSync(join(tmpdir(), 'nccl-ext-bare-'));
const installed = mkdtempSync(join(tmpdir(), 'nccl-ext-installed-'));
const home = join(installed, 'node_modules/@nccl-ext/cuda13');
mkdirSync(home, { recursive: true });
writeFileSync(
  join(home, 'package.json'),
  JSON.stringify({ name: '@nccl-ext/cuda13', version, main: 'a.cjs' }),
);
writeFileSync(
  join(home, 'a.cjs'),
  "exports.buildInfo = {}; exports.load = () => { throw new Error('no GPU here'); };",
);
afterAll(() => {
  for (const folder of [bare, installed]) rmSync(folder, { recursive: true });
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(cwd: string, args: readonly string[], env: Record<string, string> = {}): Ended {
  const clean = Object.entries(process.env).filter(([name]) => !/^(NCCL|NODE_|FORCE_COLOR|RANK)/.test(name));
  const options = { cwd, env: { ...Object.fromEntries(clean), ...env }, encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], options);
  return { code: status, stdout, stderr };
}

const refit = ['refit', '--model', 'Qwen3-0.6B', '--layers', '1', '--from', 'tp=1', '--to', 'tp=1'];
const bench = ['bench', 'm2n', '--ranks', '2', '--bytes', '16MiB'];
const selftest = ['selftest', '--group', 'sharding', '--ranks', '2'];
const benchEp = ['bench', 'ep', '--ranks', '2', '--layout', 'packed', '--tokens', '4', '--hidden', '64'];

describe('without a GPU backend', () => {
  it.each([[bench], [selftest]])('%j says that it ran on the embedded one, and why', (args) => {
    const { code, stdout, stderr } = run(bare, args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('embedded backend (no GPU backend is installed)');
  });

  it.each([[refit], [bench], [selftest]])('%j fails where a GPU backend is asked for', (args) => {
    for (const [more, env] of [
      [['--backend', 'cuda'], {}],
      [[], { NCCL_EXT_BACKEND: 'cuda' }],
    ] as const) {
      const { code, stdout } = run(bare, [...args, ...more, '--json'], env);
      expect(code).toBe(1);
      expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: { code: 'ERR_BACKEND_MISSING' } });
    }
  });
});

describe('with a GPU backend', () => {
  it.each([[refit], [bench], [selftest]])('%j takes it, and does not fall back', (args) => {
    const { code, stdout } = run(installed, [...args, '--json']);
    expect(code).toBe(1);
    expect(stdout).toContain('no GPU here');
  });

  it('measures threads where that is asked for', () => {
    const { code, stdout } = run(installed, [...bench, '--backend', 'embedded', '--workers', '1']);
    expect(code).toBe(0);
    expect(stdout).toContain('embedded backend (the embedded backend was asked for) with 1 thread\n');
  });

  it.each([[refit], [bench], [selftest]])('%j refuses threads', (args) => {
    const { code, stderr } = run(installed, [...args, '--workers', '2']);
    expect(code).toBe(2);
    expect(stderr).toContain('--workers is for the embedded backend; this is the cuda13 backend.');
    expect(stderr).toContain('--backend embedded');
  });

  it.each([
    ['refit', '0', '--sms'],
    ['bench m2n', '28,0', '--sms is "28,0"'],
    ['refit', '0,4', '--sms is "0,4"'],
    ['selftest', '28,4', '--sms is "28,4"'],
  ])('%s reads --sms %s', (command, sms, message) => {
    const args = { refit, 'bench m2n': bench, selftest }[command]!;
    const { code, stderr } = run(installed, [...args, '--sms', sms]);
    if (sms === '0')
      expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.not.stringContaining(message) });
    else expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });
});

it('refit speaks of its own options where GPUs of each side cannot be', () => {
  const sides = ['--colocated', '--from-gpus', '0', '--to-gpus', '1', '--json'];
  const { code, stdout } = run(installed, [...refit, ...sides]);
  expect(code).toBe(2);
  expect(JSON.parse(stdout).error).toMatchObject({
    code: 'ERR_INVALID_ARGUMENT',
    message: 'Rank 0 is a source and a destination; it cannot be on GPUs of --from-gpus and of --to-gpus.',
    help: 'Leave both out, or have each side on ranks of its own: leave out --colocated, or give other ranks in the manifests.',
    field: '--to-gpus',
    rank: 0,
  });
});

describe('bench ep', () => {
  it('runs on the embedded backend whatever is installed, and says why', () => {
    const { code, stdout } = run(installed, [...benchEp, '--workers', '1']);
    expect(code).toBe(0);
    expect(stdout).toContain('embedded backend (no GPU backend has expert parallelism yet) with 1 thread\n');
  });

  it.each([
    [['--backend', 'cuda'], {}, '--backend is cuda'],
    [[], { NCCL_EXT_BACKEND: 'cuda13' }, 'NCCL_EXT_BACKEND is cuda13'],
  ])('refuses a GPU backend by %j and %j', (more, env, message) => {
    const { code, stderr } = run(installed, [...benchEp, ...more], env);
    expect(code).toBe(1);
    expect(stderr).toContain(`${message}, which has no expert parallelism yet.`);
    expect(stderr).toContain('Say --backend embedded.');
  });
});
