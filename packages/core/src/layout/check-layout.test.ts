// SPDX-License-Identifier: Apache-2.0
// What a layout refuses, naming the field and what would fit.

import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { mesh } from '../mesh/device-mesh.js';
import { type Layout, type LayoutInput, layout } from './layout.js';
import { interleaved, ranges, type Split, shard, sizes, strided } from './placement.js';

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
