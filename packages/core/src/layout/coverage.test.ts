// SPDX-License-Identifier: Apache-2.0
// The first gap that ranks leave together, or the proof that there is none.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { holding, positions } from './run-lists.test-util.js';
import { dimRuns, firstUncovered } from './runs.js';

describe('firstUncovered', () => {
  it('finds the first gap, or none', () => {
    const lists = fc.array(positions(80), { maxLength: 5 });
    fc.assert(
      fc.property(lists, fc.nat(80), (all, extent) => {
        const held = new Set(all.flat());
        let start = 0;
        while (start < extent && held.has(start)) start++;
        let end = start;
        while (end < extent && !held.has(end)) end++;
        expect(firstUncovered(all.map(holding), extent)).toEqual(start === extent ? undefined : [start, end]);
      }),
      { numRuns: 1000 },
    );
  });

  it('proves periodic cover of 2^40 elements and finds the one gap near the end', () => {
    const n = 2048;
    const rounds = 2 ** 40 / (64 * n);
    const lists = Array.from({ length: n }, (_, c) =>
      dimRuns([{ start: c * 64, length: 64, stride: 64 * n, count: rounds - (c === 1500 ? 1 : 0) }]),
    );
    const gap = (rounds - 1) * 64 * n + 1500 * 64;
    expect(firstUncovered(lists, 2 ** 40)).toEqual([gap, gap + 64]);
    lists.push(dimRuns([{ start: gap, length: 64 }]));
    expect(firstUncovered(lists, 2 ** 40)).toBeUndefined();
    expect(firstUncovered(lists, 2 ** 40 + 7)).toEqual([2 ** 40, 2 ** 40 + 7]);
  });
});
