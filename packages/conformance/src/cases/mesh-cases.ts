// SPDX-License-Identifier: Apache-2.0
// Which ranks a mesh names: any order, gaps, both sides on the same ranks, ranks that take no part.

import { replicate, shard } from '@nccl-ext/core';
import type { M2nCase, SideSpec, TensorSpec } from './case.js';
import { grid, line, moveCase, onRanks } from './side.js';

export const meshCases: readonly M2nCase[] = [
  moved('destinations before sources', 4, line(2, shard(0), 2), line(2, shard(0), 0)),
  moved('destinations in reverse order', 8, line(4, shard(0)), onRanks(line(4, shard(0)), [7, 6, 5, 4])),
  moved(
    'permuted lists with gaps',
    16,
    onRanks(grid(2, 2, [shard(0), shard(1)]), [9, 2, 14, 5]),
    onRanks(grid(2, 3, [shard(1), shard(0)]), [15, 0, 7, 3, 12, 8]),
  ),
  moved('spectators at both ends and between', 12, line(3, shard(0), 2), line(2, shard(1), 8)),
  moved('one rank to one rank among 8', 8, line(1, replicate(), 3), line(1, replicate(), 6)),
  moved('one rank alone', 1, line(1, replicate()), line(1, replicate())),
  moved('a mesh without axes', 3, { axes: {}, startRank: 1, placements: {} }, line(2, shard(0), 1)),
  moved('one mesh for both sides, nothing changes', 4, line(4, shard(0)), line(4, shard(0))),
  moved('one mesh, rows to columns', 4, line(4, shard(0)), line(4, shard(1))),
  moved(
    'one mesh, every shard moves on by one rank',
    4,
    line(4, shard(0)),
    onRanks(line(4, shard(0)), [1, 2, 3, 0]),
  ),
  moved('one mesh, shards to full copies', 6, grid(2, 3, [replicate(), shard(0)]), line(6, replicate())),
  moved('one mesh, full copies to shards', 6, line(6, replicate()), grid(2, 3, [shard(1), shard(0)])),
  moved('half of the ranks are on both sides', 6, line(4, shard(0)), line(4, shard(1), 2)),
  moved('engine inside the trainer', 8, line(8, shard(0)), onRanks(line(2, shard(1)), [5, 2])),
  moved('trainer inside the engine', 8, onRanks(line(2, shard(1)), [6, 1]), grid(2, 4, [shard(0), shard(1)])),
  {
    ...moved('one trainer, three engines', 4, line(1, replicate()), line(3, replicate(), 1)),
    reports: ['huggingface/trl#2923'],
  },
  {
    ...moved('every replica of a source serves', 10, line(8, replicate()), line(2, replicate(), 8)),
    reports: ['alibaba/ROLL#431', 'NVIDIA-NeMo/RL#70'],
  },
  moveCase(
    'meshes',
    'tensors of different ranks in one transfer',
    12,
    [
      tensor(line(2, shard(0)), line(3, shard(1), 7)),
      tensor(line(2, shard(1), 2), line(3, shard(0), 7)),
      tensor(line(5, shard(0), 1), onRanks(line(4, shard(0)), [11, 0, 10, 6])),
    ],
    { reports: ['google/pathways-utils#113'] },
  ),
  ...manyRanks(),
];

function moved(what: string, ranks: number, source: SideSpec, destination: SideSpec): M2nCase {
  return moveCase('meshes', what, ranks, [tensor(source, destination)]);
}

function tensor(source: SideSpec, destination: SideSpec): TensorSpec {
  return { shape: [44, 30], dtype: 'bf16', source, destination };
}

/** More sources, targets and domain members than the fixed tables of other systems hold. */
function manyRanks(): readonly M2nCase[] {
  const wide = (what: string, sources: number, destinations: number): M2nCase =>
    moveCase(
      'meshes',
      what,
      sources + destinations,
      [
        {
          shape: [210, 6],
          dtype: 'bf16',
          source: line(sources, shard(0)),
          destination: line(destinations, shard(0), sources),
        },
      ],
      { reports: ['NVIDIA/nccl#2186'] },
    );
  return [
    wide('33 sources, 2 destinations', 33, 2),
    wide('1 source, 65 destinations', 1, 65),
    wide('36 to 36', 36, 36),
  ];
}
