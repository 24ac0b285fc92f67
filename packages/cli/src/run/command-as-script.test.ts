// SPDX-License-Identifier: Apache-2.0
// `nccl-ext run nccl-ext ...` needs no path; commands that make all ranks in one process refuse it and say so.

import { version } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { run, sortedLines, useScripts } from './run-command.test-util.js';

useScripts();

describe('this command as the script', () => {
  it('needs no path', async () => {
    const { code, stdout } = await run('run -n 2 nccl-ext --version');
    expect({ code, lines: sortedLines(stdout) }).toEqual({
      code: 0,
      lines: [`[0] ${version}`, `[1] ${version}`],
    });
  });

  it('cannot spread the self test over processes on the embedded backend', async () => {
    const { code, stdout, stderr } = await run('run -n 2 nccl-ext selftest --backend embedded');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/\[\d\] .*ERR_SINGLE_PROCESS The embedded backend has all ranks in one process/);
    expect(stderr).toMatch(/\[\d\] .*Call `nccl-ext selftest` without a launcher/);
    expect(stderr).toMatch(/^failed rank \d ended with exit code 1/m);
  });
});

describe('commands that make all ranks themselves', () => {
  it.each([
    ['refit', '--model Qwen3-0.6B --layers 1 --from tp=1 --to tp=1'],
    ['bench ep', ''],
  ])('%s refuses to be started several times', async (command, rest) => {
    const { code, stderr } = await run(`run -n 2 nccl-ext ${command} ${rest}`.trim());
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /\[\d\] .*ERR_LAUNCHER .* makes all ranks in its own process, but a launcher started 2/,
    );
    expect(stderr).toContain(`Call \`nccl-ext ${command}\` without a launcher.`);
  });
});
