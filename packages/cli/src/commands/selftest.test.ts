// SPDX-License-Identifier: Apache-2.0
// `selftest` runs the cases that were asked for, and counts them.

import { describe, expect, it } from 'vitest';
import { json, useFolder } from './shell.test-util.js';

useFolder();

describe('selftest and bench', () => {
  it('runs a group of cases', async () => {
    const { code, stderr, value } = await json(['selftest', '--group', 'sharding', '--ranks', '4']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(value).toMatchObject({ ok: true, failed: 0 });
    const cases = value.cases as { group: string; status: string }[];
    expect(cases.length).toBe((value.passed as number) + (value.skipped as number));
    expect(cases.every(({ group }) => group === 'sharding')).toBe(true);
  });

  it('runs cases of expert parallelism', async () => {
    const { code, value } = await json(['selftest', '--group', 'ep', '--filter', 'top-1', '--ranks', '4']);
    expect(code).toBe(0);
    expect(value).toMatchObject({ ok: true, failed: 0, skipped: 0 });
    expect(value.passed).toBeGreaterThan(5);
  });
});
