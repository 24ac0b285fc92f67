// SPDX-License-Identifier: Apache-2.0
// A signal to `nccl-ext run` ends all ranks, and no process stays behind.

import { describe, expect, it } from 'vitest';
import { isAlive, run, sortedLines, useScripts } from './run-command.test-util.js';

useScripts();

describe('interruption', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s is passed on once, nothing stays behind, exit code %i', async (signal, exit) => {
    let pids: number[] = [];
    const { code, stdout, stderr } = await run('run -n 2 waits.mjs', {
      onStdout: (text, child) => {
        const ready = [...text.matchAll(/ready (\d+) (\d+)\n/g)];
        if (pids.length > 0 || ready.length < 2) return;
        pids = ready.flatMap(([, own, other]) => [Number(own), Number(other)]);
        child.kill(signal);
      },
    });
    expect(code).toBe(exit);
    expect(stderr).toContain('interrupted: nothing was left behind');
    expect(sortedLines(stdout).filter((line) => line.includes('got'))).toEqual([
      `[0] got ${signal} 1`,
      `[1] got ${signal} 1`,
    ]);
    expect(pids).toHaveLength(4);
    await expect.poll(() => pids.filter(isAlive), { timeout: 5000 }).toEqual([]);
  });

  it('ends ranks by force on a second signal', async () => {
    let pid = 0;
    const started = performance.now();
    const { code } = await run('run -n 1 stubborn-alone.mjs', {
      onStdout: (text, child) => {
        if (pid === 0) pid = Number(/pid (\d+)/.exec(text)?.[1]);
        child.kill('SIGINT');
      },
    });
    expect(code).toBe(130);
    expect(performance.now() - started).toBeLessThan(4500);
    await expect.poll(() => isAlive(pid), { timeout: 5000 }).toBe(false);
  });
});
