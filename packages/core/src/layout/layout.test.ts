// SPDX-License-Identifier: Apache-2.0
// Layouts against a naive oracle that shares out plain lists of indices, one mesh axis after another.

import fc, { type GeneratorValue } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { mesh } from '../mesh/device-mesh.js';
import { type Layout, type LayoutInput, layout } from './layout.js';
import {
  blockCyclic,
  interleaved,
  type Placement,
  ranges,
  replicate,
  type Split,
  shard,
  sizes,
  strided,
} from './placement.js';
import { firstUncovered } from './runs.js';

/** torch.chunk on a list; torch returns fewer chunks than asked where DTensor pads with empty ones. */
function chunkList(list: readonly number[], n: number): number[][] {
  const size = Math.max(1, Math.ceil(list.length / n));
  return Array.from({ length: n }, (_, c) => list.slice(c * size, (c + 1) * size));
}

/** Cuts a list into segments, chunks each, and gives coordinate c its parts in segment order. */
function chunkSegments(list: readonly number[], segments: readonly number[], n: number): number[][] {
  const shares: number[][] = Array.from({ length: n }, () => []);
  let at = 0;
  for (const segment of segments) {
    chunkList(list.slice(at, at + segment), n).forEach((part, c) => {
      shares[c]!.push(...part);
    });
    at += segment;
  }
  return shares;
}

/** What each of n coordinates gets of a list, read off the words that define the splits. */
function share(split: Split, list: readonly number[], n: number): number[][] {
  switch (split.kind) {
    case 'even':
    case 'chunk':
      return chunkList(list, n);
    case 'sizes': {
      const rest = [...list];
      return split.sizes.map((size) => rest.splice(0, size));
    }
    case 'ranges':
      return split.ranges.map(([start, end]) => list.slice(start, end));
    case 'strided':
      return chunkSegments(list, Array(split.groups).fill(list.length / split.groups), n);
    case 'interleaved':
      return chunkSegments(list, split.segments, n);
    case 'blockCyclic':
      return Array.from({ length: n }, (_, c) =>
        list.filter((_, i) => Math.floor(i / split.block) % n === c),
      );
  }
}

/** Per rank position and dimension, the global indices in local order. */
function oracle(
  shape: readonly number[],
  axes: readonly number[],
  placements: readonly Placement[],
): number[][][] {
  let holders: number[][][] = [shape.map((extent) => Array.from({ length: extent }, (_, i) => i))];
  axes.forEach((n, axis) => {
    const placement = placements[axis]!;
    holders = holders.flatMap((dims) => {
      if (placement.kind === 'replicate') return Array.from({ length: n }, () => dims);
      return share(placement.split, dims[placement.dim]!, n).map((list) => dims.with(placement.dim, list));
    });
  });
  return holders;
}

/** A split that fits lists of each of these lengths. */
function anySplit(g: GeneratorValue, lengths: readonly number[], n: number): Split {
  const least = Math.min(...lengths);
  const equal = lengths.every((length) => length === least);
  const options: (() => Split)[] = [
    () => ({ kind: 'chunk' }),
    () => blockCyclic(g(fc.integer, { min: 1, max: 5 })),
    () =>
      ranges(
        Array.from({ length: n }, () => {
          const start = g(fc.nat, { max: least });
          return [start, start + g(fc.nat, { max: least - start })] as const;
        }),
      ),
  ];
  if (lengths.every((length) => length % n === 0)) options.push(() => ({ kind: 'even' }));
  const groups = [1, 2, 3, 4, 6].filter((k) => lengths.every((length) => length % k === 0));
  options.push(() => strided(groups[g(fc.nat, { max: groups.length - 1 })]!));
  if (equal) {
    const parts = (k: number): number[] => {
      const cuts = Array.from({ length: k - 1 }, () => g(fc.nat, { max: least })).sort((x, y) => x - y);
      return [...cuts, least].map((end, i) => end - (cuts[i - 1] ?? 0));
    };
    options.push(
      () => sizes(parts(n)),
      () => interleaved(parts(g(fc.integer, { min: 1, max: 4 }))),
    );
  }
  return options[g(fc.nat, { max: options.length - 1 })]!();
}

interface Case {
  readonly subject: Layout;
  readonly expected: number[][][];
}

function anyLayout(g: GeneratorValue, maxExtent: number, maxDims: number): Case {
  const axes = Array.from({ length: g(fc.integer, { min: 1, max: 4 }) }, () =>
    g(fc.integer, { min: 1, max: 4 }),
  );
  const dims = g(fc.nat, { max: maxDims });
  const shape = Array.from({ length: dims }, () => g(fc.nat, { max: maxExtent }));
  const placements: Placement[] = [];
  for (const [axis, n] of axes.entries()) {
    if (dims === 0 || g(fc.nat, { max: 4 }) === 0) {
      placements.push(replicate());
      continue;
    }
    const dim = g(fc.nat, { max: dims - 1 });
    const lengths = oracle(shape, axes.slice(0, axis), placements).map((held) => held[dim]!.length);
    placements.push(shard(dim, anySplit(g, [...new Set(lengths)], n)));
  }
  const fromTheEnd = placements.map((p) => (p.kind === 'shard' ? shard(p.dim - dims, p.split) : p));
  const size = axes.reduce((product, n) => product * n, 1);
  const ranks = Array.from({ length: size }, (_, i) => (i * 7 + 3) % 1021);
  const named = Object.fromEntries(axes.map((n, i) => [`a${i}`, n]));
  const subject = layout({
    shape,
    dtype: 'f32',
    mesh: mesh(named, { ranks }),
    placements: g(fc.boolean) ? placements : fromTheEnd,
  });
  return { subject, expected: oracle(shape, axes, placements) };
}

describe('layout', () => {
  it('holds what the oracle says, for every rank and dimension', () => {
    fc.assert(
      fc.property(fc.gen(), (g) => {
        const { subject, expected } = anyLayout(g, 40, 3);
        subject.mesh.ranks.forEach((rank, position) => {
          const runs = subject.runs(rank)!;
          const lists = runs.map(({ runs, extent }) => {
            const list: number[] = [];
            for (const run of runs) {
              expect(run.local).toBe(list.length);
              for (let i = 0; i < run.count; i++) {
                for (let x = 0; x < run.length; x++) list.push(run.start + i * run.stride + x);
              }
            }
            expect(list.length).toBe(extent);
            return list;
          });
          expect(lists).toEqual(expected[position]);
          expect(subject.localShape(rank)).toEqual(expected[position]!.map((list) => list.length));
          expect(subject.localBytes(rank)).toBe(expected[position]!.reduce((n, list) => n * list.length, 4));
        });
      }),
      { numRuns: 600 },
    );
  });

  it('maps elements there and back in up to eight dimensions, and names all holders', () => {
    fc.assert(
      fc.property(fc.gen(), (g) => {
        const { subject, expected } = anyLayout(g, 6, 8);
        const { ranks } = subject.mesh;
        for (const [position, rank] of ranks.entries()) {
          const held = expected[position]!;
          if (held.some((list) => list.length === 0)) continue;
          const local = held.map((list) => g(fc.nat, { max: list.length - 1 }));
          const global = subject.toGlobal(rank, local);
          expect(global).toEqual(local.map((index, dim) => held[dim]![index]));
          expect(subject.toLocal(rank, global)).toEqual(local);
        }
        if (subject.shape.includes(0)) return;
        const global = subject.shape.map((extent) => g(fc.nat, { max: extent - 1 }));
        const holds = (position: number): boolean =>
          expected[position]!.every((list, d) => list.includes(global[d]!));
        expect(subject.holders(global)).toEqual(ranks.filter((_, position) => holds(position)));
        ranks.forEach((rank, position) => {
          expect(subject.toLocal(rank, global) !== undefined).toBe(holds(position));
        });
      }),
      { numRuns: 400 },
    );
  });

  it('shares one object between coordinates of equal content, and only those', () => {
    fc.assert(
      fc.property(fc.gen(), (g) => {
        const { subject } = anyLayout(g, 12, 3);
        for (const { runs, axes } of subject.dims) {
          expect(runs.length).toBe(axes.reduce((n, axis) => n * subject.mesh.axes[axis]!.size, 1));
          const forms = new Set(runs.map((dim) => JSON.stringify(dim)));
          expect(new Set(runs).size).toBe(forms.size);
        }
        expect(subject.dims).toBe(subject.dims);
      }),
    );
  });

  it('covers every dimension unless ranges leave a gap', () => {
    fc.assert(
      fc.property(fc.gen(), (g) => {
        const { subject, expected } = anyLayout(g, 30, 3);
        subject.dims.forEach(({ runs }, dim) => {
          const held = new Set(expected.flatMap((lists) => lists[dim]!));
          const missing = Array.from({ length: subject.shape[dim]! }, (_, i) => i).find((i) => !held.has(i));
          expect(firstUncovered(runs, subject.shape[dim]!)?.[0]).toBe(missing);
        });
      }),
    );
  });

  it('chunks as DTensor does', () => {
    const extents = (subject: Layout): number[] =>
      subject.mesh.ranks.map((rank) => subject.localShape(rank)![0]!);
    const of = (axes: Record<string, number>, extent: number): Layout =>
      layout({
        shape: [extent],
        dtype: 'u8',
        mesh: mesh(axes),
        placements: Object.keys(axes).map(() => shard(0)),
      });
    expect(extents(of({ a: 4 }, 10))).toEqual([3, 3, 3, 1]);
    expect(extents(of({ a: 2, b: 2 }, 10))).toEqual([3, 2, 3, 2]);
    expect(extents(of({ a: 4 }, 5))).toEqual([2, 2, 1, 0]);
    expect(extents(of({ a: 4 }, 1))).toEqual([1, 0, 0, 0]);
    expect(extents(of({ a: 3 }, 0))).toEqual([0, 0, 0]);
  });

  it('holds scalars, empty tensors and f4 pairs', () => {
    const scalar = layout({ shape: [], dtype: 'f64', mesh: mesh({ tp: 2 }), placements: {} });
    expect([scalar.elements, scalar.bytes, scalar.localBytes(1)]).toEqual([1, 8, 8]);
    expect(scalar.toGlobal(1, [])).toEqual([]);
    expect(scalar.holders([])).toEqual([0, 1]);
    const empty = layout({ shape: [2 ** 52, 0, 2 ** 52], dtype: 'f64', mesh: mesh({}), placements: [] });
    expect([empty.elements, empty.bytes, empty.localBytes(0)]).toEqual([0, 0, 0]);
    const packed = layout({
      shape: [6, 512],
      dtype: 'f4e2m1x2',
      mesh: mesh({ tp: 2 }),
      placements: { tp: shard(-1) },
    });
    expect([packed.elements, packed.bytes, packed.localBytes(0)]).toEqual([3072, 3072, 1536]);
  });

  it('gives spectators nothing', () => {
    const subject = layout({ shape: [8], dtype: 'f32', mesh: mesh({ tp: 2 }), placements: { tp: shard(0) } });
    expect(subject.runs(2)).toBeUndefined();
    expect(subject.localShape(2)).toBeUndefined();
    expect(subject.localBytes(2)).toBe(0);
  });

  it('goes to JSON in normal form', () => {
    const subject = layout({
      shape: [8, 4],
      dtype: 'f32',
      mesh: mesh({ dp: 2, tp: 2 }),
      placements: { tp: shard(-1) },
    });
    expect(JSON.parse(JSON.stringify(subject))).toEqual({
      shape: [8, 4],
      dtype: 'f32',
      mesh: {
        axes: [
          { name: 'dp', size: 2 },
          { name: 'tp', size: 2 },
        ],
        startRank: 0,
      },
      placements: [{ kind: 'replicate' }, { kind: 'shard', dim: 1, split: { kind: 'chunk' } }],
    });
    expect(Object.isFrozen(subject)).toBe(true);
  });
});

describe('folding', () => {
  const runCounts = (extent: number, splits: readonly Split[]): number => {
    const axes = Object.fromEntries(splits.map((_, i) => [`a${i}`, 4]));
    const subject = layout({
      shape: [extent],
      dtype: 'u8',
      mesh: mesh(axes),
      placements: splits.map((s) => shard(0, s)),
    });
    return Math.max(...subject.dims[0]!.runs.map(({ runs }) => runs.length));
  };

  it.each<[string, number, readonly Split[], number]>([
    ['block-cyclic over a million', 1_000_000, [blockCyclic(1)], 1],
    ['block-cyclic with a ragged end', 1_000_003, [blockCyclic(64)], 2],
    ['strided', 1_000_000, [strided(1000)], 1],
    ['strided in strided', 2 ** 20, [strided(64), strided(64)], 1],
    ['nested block-cyclic', 2 ** 40, [blockCyclic(64), blockCyclic(16)], 1],
    ['chunk in block-cyclic', 2 ** 40, [blockCyclic(64), { kind: 'chunk' }], 1],
    ['block-cyclic in chunk', 2 ** 40 + 1, [{ kind: 'chunk' }, blockCyclic(64)], 3],
    ['block-cyclic in strided', 2 ** 40, [strided(4), blockCyclic(64)], 4],
    ['fused qkv', 2 ** 40, [interleaved([2 ** 39, 2 ** 38, 2 ** 38])], 3],
  ])('keeps %s short', (_, extent, splits, most) => {
    expect(runCounts(extent, splits)).toBeLessThanOrEqual(most);
  });
});

describe('extents across 2^31, 2^32 and 2^40', () => {
  const around = [2 ** 31, 2 ** 32, 2 ** 40, 2 ** 53 - 8]
    .flatMap((n) => [n - 1, n, n + 7])
    .filter((n) => n < 2 ** 53 - 1);

  it.each(around)('nests and finds elements of %d', (extent) => {
    const subject = layout({
      shape: [extent],
      dtype: 'u8',
      mesh: mesh({ a: 3, b: 2, c: 2 }),
      placements: [shard(0), shard(0, blockCyclic(1000)), shard(0)],
    });
    // By hand, in exact integers: chunk of a, block of b, chunk of what b has.
    const big = BigInt(extent);
    const size = (big + 2n) / 3n;
    for (const global of [0n, 1n, 999n, 1000n, size - 1n, size, big / 2n, 2n * size, big - 1n]) {
      const a = global / size;
      const inA = global - a * size;
      const b = (inA / 1000n) % 2n;
      const inB = (inA / 2000n) * 1000n + (inA % 1000n);
      const length = a === 2n ? big - 2n * size : size;
      const whole = length / 1000n;
      const rest = length % 1000n;
      const extentB = ((whole + 1n - b) / 2n) * 1000n + (whole % 2n === b ? rest : 0n);
      const half = (extentB + 1n) / 2n;
      const c = inB / half;
      const rank = Number(a * 4n + b * 2n + c);
      const local = Number(inB - c * half);
      expect(subject.holders([Number(global)])).toEqual([rank]);
      expect(subject.toLocal(rank, [Number(global)])).toEqual([local]);
      expect(subject.toGlobal(rank, [local])).toEqual([Number(global)]);
    }
    const total = subject.mesh.ranks.reduce((sum, rank) => sum + BigInt(subject.localShape(rank)![0]!), 0n);
    expect(total).toBe(big);
  });
});

describe('what does not fit', () => {
  const tp4 = mesh({ tp: 4 });
  const of = (over: Partial<Record<keyof LayoutInput, unknown>>): (() => Layout) => {
    return () => layout({ shape: [10, 8], dtype: 'f32', mesh: tp4, placements: {}, ...over } as LayoutInput);
  };
  const split = (s: Split | 'even'): (() => Layout) => of({ placements: { tp: shard(0, s) } });
  const nested = (s: Split | 'even'): (() => Layout) =>
    of({ mesh: mesh({ dp: 2, tp: 4 }), placements: { dp: shard(0), tp: shard(0, s) } });

  it.each<[string, () => Layout, RegExp]>([
    ['dtype', of({ dtype: 'float32' }), /^dtype must be one of f64 .* got "float32"/],
    ['mesh', of({ mesh: undefined }), /^mesh must be a DeviceMesh .* got undefined/],
    ['shape no array', of({ shape: 10 }), /^shape must be an array of extents, got 10/],
    ['negative extent', of({ shape: [10, -1] }), /^shape\[1\] must be an integer of at least 0 .* got -1/],
    ['fractional extent', of({ shape: [0.5] }), /^shape\[0\] .* got 0\.5/],
    ['NaN extent', of({ shape: [Number.NaN] }), /^shape\[0\] .* got NaN/],
    ['unsafe extent', of({ shape: [2 ** 53] }), /^shape\[0\] .*2\^53 - 1/],
    [
      'too many bytes',
      of({ shape: [2 ** 30, 2 ** 22] }),
      /1073741824 x 4194304 elements of 4 bytes are more than/,
    ],
    [
      'no placements',
      of({ placements: undefined }),
      /^placements must be an array or an object, got undefined/,
    ],
    [
      'wrong count',
      of({ placements: [shard(0), shard(1)] }),
      /one entry per mesh axis \(1\), got 2; .* axes tp/,
    ],
    [
      'unknown axis',
      of({ placements: { pp: shard(0) } }),
      /^placements\.pp names no axis; the mesh has the axes tp/,
    ],
    [
      'axis of no mesh',
      of({ mesh: mesh({}), placements: { tp: shard(0) } }),
      /names no axis; the mesh has no axes/,
    ],
    [
      'no placement',
      of({ placements: { tp: 'row' } }),
      /^placements\.tp must be replicate\(\) or shard\(dim\), got "row"/,
    ],
    [
      'dim too large',
      of({ placements: { tp: shard(2) } }),
      /^placements\.tp\.dim must be an integer in -2\.\.1, got 2/,
    ],
    ['dim too small', of({ placements: { tp: shard(-3) } }), /^placements\.tp\.dim must be .* got -3/],
    [
      'scalar',
      of({ shape: [], placements: { tp: shard(0) } }),
      /^placements\.tp shards dimension 0 of a scalar/,
    ],
    [
      'bad split',
      of({ placements: { tp: { kind: 'shard', dim: 0, split: { kind: 'strided', groups: 0 } } } }),
      /^placements\.tp\.split\.groups/,
    ],
    [
      'even',
      split('even'),
      /^placements\.tp: even shards of dim 0 need a multiple of tp = 4, got 10 = 4 x 2 \+ 2/,
    ],
    [
      'nested even',
      nested('even'),
      /what earlier axes left of dim 0 need a multiple of tp = 4, got 5 = 4 x 1 \+ 1/,
    ],
    ['sizes count', split(sizes([5, 5])), /sizes must have one entry per coordinate of tp \(4\), got 2/],
    [
      'sizes sum',
      split(sizes([3, 3, 3, 3])),
      /sizes must sum to dim 0, which is 10, got 3 \+ 3 \+ 3 \+ 3 = 12/,
    ],
    [
      'nested sizes',
      nested(sizes([3, 3, 3, 1])),
      /sum to what earlier axes left of dim 0, which is 5, got .* = 10/,
    ],
    ['segments', split(interleaved([8, 1])), /segments must sum to dim 0, which is 10, got 8 \+ 1 = 9/],
    ['no segments', split(interleaved([])), /segments must sum to dim 0, which is 10, got nothing = 0/],
    ['many segments', split(interleaved(Array(9).fill(1))), /got 1( \+ 1){7} \+ \.\.\. = 9/],
    [
      'ranges count',
      split(ranges([[0, 10]])),
      /ranges must have one entry per coordinate of tp \(4\), got 1/,
    ],
    [
      'range end',
      split(
        ranges([
          [0, 1],
          [0, 11],
          [0, 1],
          [0, 1],
        ]),
      ),
      /ranges\[1\] = \[0, 11\) ends after dim 0, which is 10/,
    ],
    ['groups', split(strided(4)), /strided needs a multiple of groups = 4 in dim 0, got 10 = 4 x 2 \+ 2/],
  ])('%s', (_, run, message) => {
    let seen: unknown;
    try {
      run();
    } catch (error) {
      seen = error;
    }
    expect(NcclExtError.is(seen, 'ERR_LAYOUT')).toBe(true);
    expect((seen as NcclExtError).message).toMatch(message);
    expect((seen as NcclExtError).field).toBeDefined();
  });

  it('refuses indices and ranks that do not exist', () => {
    const subject = layout({ shape: [10, 0], dtype: 'f32', mesh: tp4, placements: { tp: shard(0) } });
    const vector = layout({ shape: [10], dtype: 'f32', mesh: tp4, placements: { tp: shard(0) } });
    const cases: [() => unknown, RegExp][] = [
      [() => vector.toGlobal(4, [0]), /rank 4 is not in the mesh/],
      [() => vector.toLocal(-1, [0]), /rank -1 is not in the mesh/],
      [() => vector.toGlobal(3, [1]), /localIndex\[0\] must be an integer in 0\.\.0, got 1/],
      [() => vector.toLocal(0, [10]), /globalIndex\[0\] must be an integer in 0\.\.9, got 10/],
      [() => vector.holders([0, 0]), /one entry per dimension \(1\), got 2/],
      [() => subject.holders([0, 0]), /dimension 1 is empty/],
    ];
    for (const [run, message] of cases) {
      expect(run).toThrow(message);
      try {
        run();
      } catch (error) {
        expect(NcclExtError.is(error, 'ERR_INVALID_ARGUMENT')).toBe(true);
      }
    }
  });
});
