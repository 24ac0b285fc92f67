// SPDX-License-Identifier: Apache-2.0
// Several mesh axes that shard: the same dimension, one inside the other, or different ones.

import { blockCyclic, interleaved, type Placement, replicate, shard, strided } from '@nccl-ext/core';
import type { M2nCase, SideSpec } from './case.js';
import { grid, moveCase } from './side.js';

export const nestedCases: readonly M2nCase[] = nested();

function nested(): readonly M2nCase[] {
  const both = (what: string, shape: readonly number[], source: SideSpec, destination: SideSpec): M2nCase =>
    moveCase('placements', what, 12, [{ shape, dtype: 'bf16', source, destination }], {
      reports: ['pytorch/pytorch#161368', 'pytorch/pytorch#168134'],
    });
  const twice = (y: Placement, x: Placement, startRank: number): SideSpec => grid(2, 3, [y, x], startRank);
  return [
    both('nested 10 over 2 x 3', [10, 9], twice(shard(0), shard(0), 0), twice(shard(1), shard(1), 6)),
    both(
      'strided inside blocks',
      [48, 5],
      twice(shard(0), shard(0, strided(2)), 0),
      twice(shard(0, strided(4)), shard(0), 6),
    ),
    both(
      'blocks inside interleaved',
      [48, 5],
      twice(shard(0, interleaved([24, 16, 8])), shard(0), 0),
      twice(shard(0, blockCyclic(3)), shard(0, blockCyclic(2)), 6),
    ),
    both(
      'block-cyclic in both dimensions',
      [31, 29],
      twice(shard(0, blockCyclic(4)), shard(1, blockCyclic(3)), 0),
      twice(shard(0, blockCyclic(2)), shard(1, blockCyclic(5)), 6),
    ),
    both(
      'two shard axes to none',
      [14, 15],
      twice(shard(0), shard(1), 0),
      twice(replicate(), replicate(), 6),
    ),
    both(
      'none to two shard axes',
      [14, 15],
      twice(replicate(), replicate(), 0),
      twice(shard(1), shard(0), 6),
    ),
    moveCase('placements', 'a second shard axis of size 1', 6, [
      {
        shape: [12, 10],
        dtype: 'f32',
        source: { axes: { a: 1, b: 3 }, placements: { a: shard(1), b: shard(0) } },
        destination: { axes: { a: 3, b: 1 }, startRank: 3, placements: { a: shard(1), b: shard(0) } },
      },
    ]),
    moveCase('placements', 'four axes, three of them shard', 16, [
      {
        shape: [9, 8, 7],
        dtype: 'u16',
        source: {
          axes: { pp: 1, dp: 2, cp: 2, tp: 2 },
          placements: { dp: shard(2), cp: shard(0), tp: shard(0) },
        },
        destination: {
          axes: { a: 2, b: 2, c: 2 },
          startRank: 8,
          placements: { a: shard(0), b: shard(1), c: shard(2) },
        },
      },
    ]),
  ];
}
