// SPDX-License-Identifier: Apache-2.0
// `refit` moves a checkpoint, verifies it and reports, or ends and leaves nothing behind.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkpoint, folder, json, run, start, useFolder } from './shell.test-util.js';

useFolder();

describe('refit', () => {
  const sides = ['--from', 'tp=4', '--to', 'tp=2,dp=2'];

  it('moves a checkpoint, verifies it and writes a report', async () => {
    const report = join(folder, 'report.html');
    const args = ['refit', '--checkpoint', checkpoint, ...sides, '--verify', '--report', report];
    const { code, stderr, value } = await json(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(value).toMatchObject({
      ok: true,
      tensors: 24,
      ranks: 8,
      backend: 'embedded',
      verified: true,
      version: 1,
      report,
      from: 'tp=4',
      to: 'tp=2,dp=2',
    });
    expect(value.wireBytes).toBe(value.lowerBoundBytes);
    expect(value.digest).toMatch(/^[0-9a-f]{64}$/);
    const phases = ['plan', 'load', 'prepare', 'pause', 'move', 'verify', 'stall', 'check'];
    for (const name of [...phases.map((phase) => `${phase}Ms`), 'gigabytesPerSecond'])
      expect(value[name]).toBeGreaterThan(0);
    const html = await readFile(report, 'utf8');
    expect(html).toMatch(/^<!doctype html>/);
    expect(html).toContain('--from tp=4 --to tp=2,dp=2 --verify');
  });

  it('says the same to a person, every number with its unit', async () => {
    const { code, stdout, stderr } = await run(['refit', '--checkpoint', join(folder, 'tiny'), ...sides]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^done .*B moved from tp=4 to tp=2,dp=2\n/);
    expect(stdout).toMatch(/move +[\d.]+ (us|ms), [\d.]+ [kMG]B\/s/);
    expect(stdout).toMatch(/stall +[\d.]+ (us|ms) from pause to published/);
    expect(stdout).toContain('no (add --verify)');
    expect(stdout).toContain('embedded backend (no GPU backend is installed)');
  });

  it('repeats, and tells the median and the first', async () => {
    const args = ['refit', '--checkpoint', checkpoint, ...sides, '--check', '--repeat', '3'];
    const { value } = await json(args);
    expect(value).toMatchObject({ version: 3, verified: true, hashed: false });
    const repeats = value.repeats as { stallMs: number }[];
    expect(repeats.length).toBe(3);
    expect(repeats.map(({ stallMs }) => stallMs)).toContain(value.stallMs);
    const { stdout } = await run(args);
    expect(stdout).toMatch(/stall .*median of 3; the first .* from pause to published/);
  });

  it('makes up values for a model, casts, and runs on the same ranks', async () => {
    const shapes = join(folder, 'model.json');
    await writeFile(shapes, '{"w": {"shape": [64, 64], "dtype": "F32"}}');
    const rules = join(folder, 'rules.json');
    await writeFile(rules, '{"name": "one", "rules": [{"match": "w", "cut": "column"}]}');
    const { code, value } = await json([
      ...['refit', '--model', shapes, '--rules', rules, '--from', 'tp=2', '--to', 'tp=2', '--colocated'],
      ...['--cast', 'BF16', '--verify', '--workers', '1', '--timeout', '20000', '--backend', 'embedded'],
    ]);
    expect(code).toBe(0);
    expect(value).toMatchObject({ ranks: 2, wireBytes: 0, localBytes: 64 * 64 * 2, verified: true });
  });

  it('fails, not misused, where the backend is not installed', async () => {
    const { code, value } = await json(['refit', '--checkpoint', checkpoint, ...sides, '--backend', 'cuda']);
    expect(code).toBe(1);
    expect(value).toMatchObject({ ok: false, error: { code: 'ERR_BACKEND_MISSING' } });
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('ends on %s with %i and leaves nothing behind', async (signal, exit) => {
    const own = join(folder, signal);
    await mkdir(own);
    // The values of a whole model take seconds; the log line says that ranks exist and loading begins.
    const child = start(
      ['refit', '--model', 'Qwen3-0.6B', ...sides, '--verify', '--report', join(own, 'report.html')],
      { NCCL_EXT_LOG_LEVEL: 'debug' },
    );
    let stderr = '';
    await new Promise<void>((resolve) => {
      child.stderr!.on('data', (text: Buffer) => {
        stderr += text.toString();
        if (stderr.includes('backend opened')) resolve();
      });
    });
    child.kill(signal);
    const code = await new Promise((resolve) => child.on('close', resolve));
    expect(code).toBe(exit);
    expect(stderr).toContain('interrupted: nothing was left behind');
    expect(await readdir(own)).toEqual([]);
  });
});
