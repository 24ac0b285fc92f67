// SPDX-License-Identifier: Apache-2.0
// Progressions against element lists, in both forms: any order, and ordered without interleaving.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { intersectProgressions, orderedCost, type Progression } from './intersect-progressions.js';
import type { RunIntersection } from './intersect-runs.js';

const progressions: fc.Arbitrary<Progression> = fc
  .record({
    start: fc.nat(400),
    length: fc.integer({ min: 1, max: 40 }),
    gap: fc.nat(60),
    count: fc.integer({ min: 1, max: 60 }),
    value: fc.nat(99),
    valueGap: fc.nat(9),
  })
  .map(({ start, length, gap, count, value, valueGap }) => {
    return { start, length, stride: length + gap, count, value, valueStride: length + valueGap };
  });

/** Value by position. */
function values(p: Progression): Map<number, number> {
  const all = new Map<number, number>();
  for (let i = 0; i < p.count; i++) {
    for (let x = 0; x < p.length; x++) all.set(p.start + i * p.stride + x, p.value + i * p.valueStride + x);
  }
  return all;
}

/** [position, value in a, value in b], in the order of the items. */
function listed(items: readonly RunIntersection[]): number[][] {
  const all: number[][] = [];
  for (const item of items) {
    for (let i = 0; i < item.count; i++) {
      for (let x = 0; x < item.length; x++) {
        const { start, stride, aLocal, aStride, bLocal, bStride } = item;
        all.push([start + i * stride + x, aLocal + i * aStride + x, bLocal + i * bStride + x]);
      }
    }
  }
  return all;
}

describe('intersectProgressions', () => {
  it.each([true, false])('finds the common positions with both values (ordered: %s)', (ordered) => {
    fc.assert(
      fc.property(progressions, progressions, (a, b) => {
        const items: RunIntersection[] = [];
        intersectProgressions(a, b, ordered, items);
        const inB = values(b);
        const expected = [...values(a)].flatMap(([at, value]) =>
          inB.has(at) ? [[at, value, inB.get(at)!]] : [],
        );
        const found = listed(items);
        expect(ordered ? found : found.sort((x, y) => x[0]! - y[0]!)).toEqual(expected);
        if (ordered) expect(items.length).toBeLessThanOrEqual(orderedCost(a, b));
      }),
      { numRuns: 500 },
    );
  });
});
