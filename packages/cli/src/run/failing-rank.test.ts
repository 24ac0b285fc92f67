// SPDX-License-Identifier: Apache-2.0
// The failure of one rank ends all, by force where that is needed, and is named.

import { describe, expect, it } from 'vitest';
import { run, useScripts } from './run-command.test-util.js';

useScripts();

describe('a failing rank', () => {
  it('ends the others quickly and is named', async () => {
    const { code, stdout, stderr } = await run('run --json -n 4 fails.mjs');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^failed rank 1 ended with exit code 7 after /m);
    const { ok, ranks } = JSON.parse(stdout);
    expect(ok).toBe(false);
    expect(ranks).toMatchObject([
      { rank: 0, exitCode: null, signal: 'SIGTERM' },
      { rank: 1, exitCode: 7, signal: null },
      { rank: 2 },
      { rank: 3, exitCode: null, signal: 'SIGTERM' },
    ]);
    for (const { ms } of ranks) expect(ms).toBeLessThan(4500);
  });

  it('may be ended by a signal', async () => {
    const { code, stdout, stderr } = await run('run -n 2 killed.mjs');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^failed rank 0 was ended by SIGKILL after .*\n {2}1 other rank ended because/);
  });

  it('ends others by force when they do not end when asked', async () => {
    const { code, stdout } = await run('run --json -n 2 stubborn.mjs');
    expect(code).toBe(1);
    const { ranks } = JSON.parse(stdout);
    expect(ranks).toMatchObject([{ exitCode: 1 }, { exitCode: null, signal: 'SIGKILL' }]);
    expect(ranks[1].ms).toBeGreaterThan(4900);
  });
});
