// SPDX-License-Identifier: Apache-2.0
// Every way to split a dimension, alone, nested and against each other.

import { blockCyclic, interleaved, ranges, type Split, shard, sizes, strided } from '@nccl-ext/core';
import type { M2nCase } from './case.js';
import { grid, line, moveCase } from './side.js';

/** Splits of an extent of 24 over 3 coordinates. */
const splitsOf24: Readonly<Record<string, Split>> = {
  even: { kind: 'even' },
  chunk: { kind: 'chunk' },
  sizes: sizes([5, 0, 19]),
  strided: strided(4),
  interleaved: interleaved([12, 7, 5]),
  blockCyclic1: blockCyclic(1),
  blockCyclic5: blockCyclic(5),
  // Coordinates 0 and 1 hold the same eight positions, as replicated KV heads do.
  ranges: ranges([
    [0, 8],
    [0, 8],
    [8, 24],
  ]),
};

/** Each split against each other one, along rows and along columns of one tensor. */
const pairs: readonly M2nCase[] = Object.entries(splitsOf24).flatMap(([from, source]) =>
  Object.entries(splitsOf24).map(([to, destination]) =>
    moveCase('placements', `${from} to ${to}`, 6, [
      {
        shape: [24, 10],
        dtype: 'i16',
        source: line(3, shard(0, source)),
        destination: line(3, shard(0, destination), 3),
      },
      {
        shape: [5, 24],
        dtype: 'i16',
        source: line(3, shard(1, source)),
        destination: line(3, shard(1, destination), 3),
      },
      {
        shape: [24, 24],
        dtype: 'i16',
        source: line(3, shard(0, source)),
        destination: line(3, shard(1, destination), 3),
      },
    ]),
  ),
);

export const placementCases: readonly M2nCase[] = [...pairs, ...uneven()];

function uneven(): readonly M2nCase[] {
  const vector = (extent: number, from: number, to: number): M2nCase =>
    moveCase(
      'placements',
      `uneven ${extent} over ${from} to ${to}`,
      from + to,
      [
        {
          shape: [extent],
          dtype: 'f32',
          source: line(from, shard(0)),
          destination: line(to, shard(0), from),
        },
      ],
      { reports: ['pytorch/pytorch#103306', 'pytorch/pytorch#191580'] },
    );
  return [
    vector(5, 2, 2),
    vector(10, 4, 3),
    vector(7, 3, 4),
    vector(3, 4, 2),
    vector(1, 4, 4),
    vector(1021, 5, 7),
    moveCase(
      'placements',
      'uneven blocks by width and height',
      10,
      [
        {
          shape: [35, 67],
          dtype: 'bf16',
          source: grid(2, 3, [shard(0), shard(1)]),
          destination: grid(2, 2, [shard(1), shard(0)], 6),
        },
      ],
      { reports: ['tenstorrent/tt-metal#7725', 'tenstorrent/tt-metal#5771'] },
    ),
    moveCase(
      'placements',
      'custom sizes with empty shards on both sides',
      8,
      [
        {
          shape: [23, 6],
          dtype: 'u32',
          source: line(4, shard(0, sizes([0, 11, 0, 12]))),
          destination: line(4, shard(0, sizes([9, 0, 0, 14])), 4),
        },
      ],
      { reports: ['pytorch/pytorch#144109'] },
    ),
  ];
}
