// SPDX-License-Identifier: Apache-2.0
// What the parameters of language models do: fused projections, replicated heads, experts, vocabularies.

import { blockCyclic, interleaved, ranges, replicate, shard, strided } from '@nccl-ext/core';
import type { M2nCase } from './case.js';
import { grid, line, moveCase } from './side.js';

export const modelShapeCases: readonly M2nCase[] = [
  moveCase(
    'placements',
    'fused qkv from 4 to 2 ranks',
    6,
    [
      {
        shape: [96, 40],
        dtype: 'bf16',
        source: line(4, shard(0, interleaved([64, 16, 16]))),
        destination: line(2, shard(0, interleaved([64, 16, 16])), 4),
      },
    ],
    { reports: ['NVIDIA-NeMo/RL#2413', 'pytorch/pytorch#172812'] },
  ),
  moveCase(
    'placements',
    'fused gate-up from 2 to 4 ranks',
    6,
    [
      {
        shape: [64, 40],
        dtype: 'bf16',
        source: line(2, shard(0, strided(2))),
        destination: line(4, shard(0, strided(2)), 2),
      },
    ],
    { reports: ['NVIDIA-NeMo/RL#2808', 'pytorch/pytorch#184443'] },
  ),
  moveCase('placements', 'two KV heads to four ranks, each held twice', 6, [
    {
      shape: [32, 24],
      dtype: 'bf16',
      source: line(2, shard(0)),
      destination: line(
        4,
        shard(
          0,
          ranges([
            [0, 16],
            [0, 16],
            [16, 32],
            [16, 32],
          ]),
        ),
        2,
      ),
    },
  ]),
  moveCase('placements', 'overlapping ranges as sources', 6, [
    {
      shape: [30, 3],
      dtype: 'i32',
      source: line(
        3,
        shard(
          0,
          ranges([
            [0, 20],
            [5, 25],
            [12, 30],
          ]),
        ),
      ),
      destination: line(3, shard(1), 3),
    },
  ]),
  moveCase('placements', 'a destination that wants parts of the tensor only', 4, [
    {
      shape: [30, 5],
      dtype: 'i32',
      source: line(2, shard(0)),
      destination: line(
        2,
        shard(
          0,
          ranges([
            [3, 9],
            [20, 20],
          ]),
        ),
        2,
      ),
    },
  ]),
  moveCase(
    'placements',
    'experts regrouped from 8 to 2 x 2',
    12,
    [
      {
        shape: [16, 12, 10],
        dtype: 'bf16',
        source: line(8, shard(0)),
        destination: grid(2, 2, [shard(0, blockCyclic(1)), shard(1)], 8),
      },
    ],
    { reports: ['NVIDIA-NeMo/RL#2971'] },
  ),
  moveCase('placements', 'a vocabulary that does not divide', 8, [
    {
      shape: [1519, 16],
      dtype: 'bf16',
      source: line(4, shard(0)),
      destination: grid(2, 2, [replicate(), shard(0)], 4),
    },
  ]),
];
