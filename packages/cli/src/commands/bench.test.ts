// SPDX-License-Identifier: Apache-2.0
// `bench` measures every row against its bound, and says on what.

import { describe, expect, it } from 'vitest';
import { json, useFolder } from './shell.test-util.js';

useFolder();

describe('selftest and bench', () => {
  it('measures expert parallelism', async () => {
    const sizes = ['--tokens', '8', '--hidden', '512', '--experts', '16', '--top-k', '2', '--workers', '1'];
    const { code, value } = await json(['bench', 'ep', ...sizes, '--layout', 'expert-major']);
    expect(code).toBe(0);
    const rows = value.rows as { layout: string; operation: string; formulaBytes: number; ofBound: number }[];
    expect(rows.map(({ layout, operation }) => `${layout} ${operation}`)).toEqual([
      'expert-major dispatch',
      'expert-major combine',
    ]);
    for (const { formulaBytes, ofBound } of rows) {
      expect(formulaBytes % 1024).toBe(0);
      expect(ofBound).toBeGreaterThan(0);
    }
    expect(value).toMatchObject({ backend: 'embedded', step: { tokens: 1, stepsPerGraph: 100 } });
  });

  it('measures against the copy ceiling', async () => {
    const { code, value } = await json([
      'bench',
      'm2n',
      '--ranks',
      '4',
      '--bytes',
      '16MiB',
      '--workers',
      '1',
    ]);
    expect(code).toBe(0);
    expect(value).toMatchObject({ backend: 'embedded' });
    const rows = value.rows as { ofBound: number; bytes: number }[];
    expect(rows).toHaveLength(4);
    for (const { ofBound, bytes } of rows) {
      expect(ofBound).toBeGreaterThan(0);
      expect(bytes).toBeGreaterThan(2 ** 23);
    }
    expect(value.stepsPerGraph).toBe(100);
    const steps = value.steps as { bytes: number; enqueueMs: number }[];
    expect(steps.map((step) => step.bytes)).toEqual([2 ** 20, 8]);
    for (const { enqueueMs } of steps) expect(enqueueMs).toBeGreaterThan(0);
  });
});
