// SPDX-License-Identifier: Apache-2.0
// The common elements of two ranks, exact at any extent, in few items and in linear time.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { holding, positions } from './run-lists.test-util.js';
import { type DimRuns, dimRuns, globalToLocal, intersectRuns, type RunIntersection } from './runs.js';

/** All (global, a-local, b-local) triples, from lists. */
function naiveIntersection(a: readonly number[], b: readonly number[]): number[][] {
  return a.flatMap((global, i) => (b.includes(global) ? [[global, i, b.indexOf(global)]] : []));
}

function triples(items: readonly RunIntersection[]): number[][] {
  return items
    .flatMap((x) =>
      Array.from({ length: x.count }, (_, i) =>
        Array.from({ length: x.length }, (_, k) => [
          x.start + i * x.stride + k,
          x.aLocal + i * x.aStride + k,
          x.bLocal + i * x.bStride + k,
        ]),
      ).flat(),
    )
    .sort((x, y) => x[0]! - y[0]!);
}

const elements = (items: readonly RunIntersection[]): number =>
  items.reduce((n, x) => n + x.count * x.length, 0);
const intervals = (items: readonly RunIntersection[]): number => items.reduce((n, x) => n + x.count, 0);

describe('intersectRuns', () => {
  it('finds exactly the common elements, sorted, in maximal pieces', () => {
    fc.assert(
      fc.property(positions(300), positions(300), (a, b) => {
        const items = intersectRuns(holding(a), holding(b));
        const expected = naiveIntersection(a, b);
        expect(triples(items)).toEqual(expected);
        expect(items.every((x, i) => i === 0 || items[i - 1]!.start < x.start)).toBe(true);
        const breaks = expected.filter(
          (t, i) => i === 0 || t.some((value, side) => value !== expected[i - 1]![side]! + 1),
        );
        expect(intervals(items)).toBe(breaks.length);
        for (const x of items)
          if (x.count === 1) expect([x.stride, x.aStride, x.bStride]).toEqual(Array(3).fill(x.length));
      }),
      { numRuns: 1000 },
    );
  });

  it('takes runs in any global order and uncut pieces that touch', () => {
    // Halves swapped in a; b in touching pieces, as a manifest may list them.
    const a: DimRuns = {
      extent: 8,
      runs: [
        { start: 4, length: 4, stride: 4, count: 1, local: 0 },
        { start: 0, length: 2, stride: 2, count: 2, local: 4 },
      ],
    };
    const b: DimRuns = {
      extent: 8,
      runs: [
        { start: 0, length: 3, stride: 3, count: 2, local: 0 },
        { start: 6, length: 2, stride: 2, count: 1, local: 6 },
      ],
    };
    expect(intersectRuns(a, b)).toEqual([
      { start: 0, length: 4, count: 1, stride: 4, aLocal: 4, aStride: 4, bLocal: 0, bStride: 4 },
      { start: 4, length: 4, count: 1, stride: 4, aLocal: 0, aStride: 4, bLocal: 4, bStride: 4 },
    ]);
  });

  it('stays one item where patterns keep step, at any extent', () => {
    const wide = dimRuns([{ start: 0, length: 64, stride: 256, count: 2 ** 34 }]);
    const narrow = dimRuns([{ start: 256, length: 64, stride: 512, count: 2 ** 33 }]);
    expect(intersectRuns(wide, narrow)).toEqual([
      {
        start: 256,
        length: 64,
        count: 2 ** 33,
        stride: 512,
        aLocal: 64,
        aStride: 128,
        bLocal: 0,
        bStride: 64,
      },
    ]);
    expect(intersectRuns(wide, wide)).toHaveLength(1);
    const half = dimRuns([{ start: 0, length: 2 ** 41 + 32 }]);
    expect(intersectRuns(wide, half)).toEqual([
      { start: 0, length: 64, count: 2 ** 33, stride: 256, aLocal: 0, aStride: 64, bLocal: 0, bStride: 256 },
      {
        start: 2 ** 41,
        length: 32,
        count: 1,
        stride: 32,
        aLocal: 2 ** 39,
        aStride: 32,
        bLocal: 2 ** 41,
        bStride: 32,
      },
    ]);
  });

  it('needs an item per offset, not per interval, where patterns do not keep step', () => {
    const extent = 2 ** 40;
    const cyclic = (block: number, n: number): DimRuns[] =>
      Array.from({ length: n }, (_, c) => {
        const whole = Math.floor(extent / block);
        const count = Math.ceil((whole - c) / n);
        const rest = whole % n === c ? [{ start: whole * block, length: extent - whole * block }] : [];
        return dimRuns([{ start: c * block, length: block, stride: block * n, count }, ...rest]);
      });
    let total = 0;
    for (const a of cyclic(3, 4)) {
      for (const b of cyclic(5, 3)) {
        const items = intersectRuns(a, b);
        expect(items.length).toBeLessThan(10);
        total += elements(items);
      }
    }
    expect(total).toBe(extent);
  });

  it('is exact where residues multiply past 2^53', () => {
    const p = 2 ** 28 + 3;
    const q = 2 ** 28 + 1;
    // They meet at p * 700 + 11 by construction, two elements into b; the next meeting is p * q later.
    const a = dimRuns([{ start: 11, length: 5, stride: p, count: 5000 }]);
    const meeting = p * 700 + 11;
    const j = Math.floor((meeting - 2) / q);
    const b = dimRuns([{ start: meeting - 2 - j * q, length: 4, stride: q, count: 5000 }]);
    const items = intersectRuns(a, b);
    const naive: number[] = [];
    for (let i = 0; i < 5000; i++) {
      for (let x = 0; x < 5; x++)
        if (globalToLocal(b, 11 + i * p + x) !== undefined) naive.push(11 + i * p + x);
    }
    expect(naive).toContain(meeting);
    expect(triples(items).map(([global]) => global)).toEqual(naive);
    for (const [global, x, y] of triples(items)) {
      expect(globalToLocal(a, global!)).toBe(x);
      expect(globalToLocal(b, global!)).toBe(y);
    }
  });

  it('takes time linear in the runs', () => {
    // Irregular gaps, so that nothing folds.
    const irregular = (seed: number): DimRuns => {
      let start = 0;
      return dimRuns(
        Array.from({ length: 100_000 }, (_, i) => {
          start += 3 + ((i * i * seed) % 11);
          return { start, length: 1 + (i % 2) };
        }),
      );
    };
    const a = irregular(3);
    const b = irregular(5);
    // Comparing all pairs would take minutes, more than a test has.
    const items = intersectRuns(a, b);
    expect(items.length).toBeGreaterThan(1000);
  });
});
