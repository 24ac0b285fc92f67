// SPDX-License-Identifier: Apache-2.0
// Runs against plain lists of elements: folding, composing, intersecting, covering.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { composeRuns } from './compose-runs.js';
import {
  type DimRuns,
  dimRuns,
  firstUncovered,
  globalToLocal,
  intersectRuns,
  localToGlobal,
  type RunIntersection,
} from './runs.js';

/** Global positions in local order, read off the definition of AffineRun. */
function expand({ runs }: DimRuns): number[] {
  return runs.flatMap((run) =>
    Array.from({ length: run.count }, (_, i) =>
      Array.from({ length: run.length }, (_, x) => run.start + i * run.stride + x),
    ).flat(),
  );
}

/** Runs that hold exactly these ascending positions. */
const holding = (positions: readonly number[]): DimRuns =>
  dimRuns(positions.map((start) => ({ start, length: 1 })));

const subset = (max: number): fc.Arbitrary<number[]> =>
  fc.uniqueArray(fc.nat(max - 1), { maxLength: max }).map((list) => list.sort((x, y) => x - y));

/** Every so many, a few: what block-cyclic layouts look like, with a ragged end. */
const periodic = (max: number): fc.Arbitrary<number[]> =>
  fc
    .record({ block: fc.integer({ min: 1, max: 7 }), gap: fc.nat(9), start: fc.nat(20), end: fc.nat(max) })
    .map(({ block, gap, start, end }) =>
      Array.from({ length: max }, (_, i) => i).filter(
        (i) => i >= start && i < end && (i - start) % (block + gap) < block,
      ),
    );

const positions = (max: number): fc.Arbitrary<number[]> => fc.oneof(subset(max), periodic(max));

describe('dimRuns', () => {
  it('keeps content, stays canonical and as short as any greedy folding', () => {
    fc.assert(
      fc.property(positions(120), (list) => {
        const runs = holding(list);
        expect(expand(runs)).toEqual(list);
        expect(runs.extent).toBe(list.length);
        let local = 0;
        for (const run of runs.runs) {
          expect(run.local).toBe(local);
          expect(run.count === 1 ? run.stride === run.length : run.stride > run.length).toBe(true);
          local += run.length * run.count;
        }
      }),
    );
  });

  it('has one form for one content, however the pieces are cut', () => {
    const cut = fc.tuple(periodic(90), fc.infiniteStream(fc.boolean()));
    fc.assert(
      fc.property(cut, ([list, cuts]) => {
        const whole = holding(list);
        const pieces: { start: number; length: number; stride: number; count: number }[] = [];
        for (const run of whole.runs) {
          let left = { ...run };
          while (left.count > 1 && cuts.next().value) {
            pieces.push({ ...left, count: 1 });
            left = { ...left, start: left.start + left.stride, count: left.count - 1 };
          }
          pieces.push(left);
        }
        expect(dimRuns(pieces)).toEqual(whole);
      }),
    );
  });

  it('gives the first step to the earlier run when a progression follows', () => {
    // Elements 0, 10, 13, 16, 19 one by one or as 0 and a progression: the same form.
    const single = { start: 0, length: 1 };
    expect(dimRuns([single, { start: 10, length: 1, stride: 3, count: 4 }])).toEqual(
      holding([0, 10, 13, 16, 19]),
    );
  });

  it('joins what touches and drops what is empty', () => {
    expect(
      dimRuns([
        { start: 0, length: 4, stride: 4, count: 5 },
        { start: 99, length: 0 },
      ]).runs,
    ).toEqual([{ start: 0, length: 20, stride: 20, count: 1, local: 0 }]);
    const ragged = dimRuns([
      { start: 0, length: 2, stride: 6, count: 3 },
      { start: 14, length: 2, stride: 6, count: 3 },
    ]);
    expect(expand(ragged)).toEqual([0, 1, 6, 7, 12, 13, 14, 15, 20, 21, 26, 27]);
    expect(ragged.runs).toEqual([
      { start: 0, length: 2, stride: 6, count: 2, local: 0 },
      { start: 12, length: 4, stride: 4, count: 1, local: 4 },
      { start: 20, length: 2, stride: 6, count: 2, local: 8 },
    ]);
    expect(dimRuns([])).toEqual({ extent: 0, runs: [] });
  });

  it('refuses pieces that overlap or do not ascend', () => {
    for (const pieces of [
      [
        { start: 0, length: 3 },
        { start: 2, length: 1 },
      ],
      [
        { start: 5, length: 1 },
        { start: 0, length: 1 },
      ],
      [{ start: 0, length: 3, stride: 2, count: 2 }],
    ]) {
      expect(() => dimRuns(pieces)).toThrow(NcclExtError);
      expect(() => dimRuns(pieces)).toThrow(/ascend without overlap/);
    }
  });
});

describe('localToGlobal and globalToLocal', () => {
  it('agree with the list', () => {
    fc.assert(
      fc.property(positions(100), (list) => {
        const runs = holding(list);
        expect(list.map((_, local) => localToGlobal(runs, local))).toEqual(list);
        for (let global = 0; global < 100; global++) {
          const local = list.indexOf(global);
          expect(globalToLocal(runs, global)).toBe(local < 0 ? undefined : local);
        }
      }),
    );
  });
});

describe('composeRuns', () => {
  it('selects from a selection', () => {
    fc.assert(
      fc.property(positions(150), positions(60), (outer, inner) => {
        const within = inner.filter((i) => i < outer.length);
        const composed = composeRuns(holding(outer), holding(within));
        expect(composed).toEqual(holding(within.map((i) => outer[i]!)));
      }),
      { numRuns: 500 },
    );
  });

  it('refuses periodic patterns that would need millions of runs', () => {
    const outer = dimRuns([{ start: 0, length: 64, stride: 128, count: 2 ** 32 }]);
    const inner = dimRuns([{ start: 0, length: 128, stride: 256, count: 2 ** 30 }]);
    expect(() => composeRuns(outer, inner)).toThrow(/more than 1048576 runs/);
  });
});

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
