// SPDX-License-Identifier: Apache-2.0
// The same moves executed in every way that a program can: many tensors at once, many times, on several streams, from a graph.

import { type DType, replicate, shard, strided } from '@nccl-ext/core';
import type { M2nCase, TensorSpec } from './case.js';
import { grid, line, moveCase } from './side.js';

const square: TensorSpec = {
  shape: [64, 64],
  dtype: 'f32',
  source: line(2, shard(0)),
  destination: line(2, shard(0), 2),
};
const crossed: TensorSpec = { ...square, destination: line(2, shard(1), 2) };
const alone = { source: line(1, replicate()), destination: line(1, replicate()) };

export const executionCases: readonly M2nCase[] = [
  ...groupCases(),
  moveCase('streams', 'a new stream for every refit', 4, [square], { repeat: 5, streams: 'fresh' }),
  moveCase('streams', 'three refits on alternating streams', 4, [square], {
    repeat: 3,
    streams: 2,
    pipelined: true,
  }),
  moveCase('streams', 'thirty refits enqueued before the first is done', 4, [crossed], {
    repeat: 30,
    pipelined: true,
  }),
  moveCase('streams', 'thirty refits over three streams, hashed', 4, [crossed], {
    repeat: 30,
    streams: 3,
    pipelined: true,
    verify: true,
  }),
  moveCase('streams', 'two plans take turns', 4, [square], { alternate: [crossed], repeat: 10 }),
  moveCase('streams', 'two plans take turns without waiting', 4, [square], {
    alternate: [crossed],
    repeat: 20,
    pipelined: true,
    streams: 2,
  }),
  moveCase(
    'streams',
    'a pool under pressure: 0 to 2 of three dimensions',
    4,
    [
      {
        shape: [32, 64, 64],
        dtype: 'bf16',
        source: line(2, shard(0)),
        destination: line(2, shard(2), 2),
      },
    ],
    { repeat: 6, pipelined: true },
  ),
  moveCase('graphs', 'captured before any run', 4, [square], { repeat: 2, capture: 'cold' }),
  moveCase('graphs', 'captured after a run', 4, [square], { repeat: 2, capture: 'warm' }),
  moveCase('graphs', 'a hundred replays', 4, [crossed], { repeat: 100, capture: 'cold' }),
  moveCase(
    'graphs',
    'fifty replays enqueued before the first is done',
    6,
    [{ ...crossed, destination: grid(2, 2, [shard(1), replicate()], 2) }],
    { repeat: 50, capture: 'warm', pipelined: true },
  ),
  moveCase('graphs', 'two captured plans take turns', 4, [square], {
    alternate: [crossed],
    repeat: 20,
    capture: 'cold',
  }),
  moveCase('graphs', 'a cast, replayed', 4, [{ ...crossed, castTo: 'bf16' }], {
    repeat: 10,
    capture: 'cold',
  }),
  moveCase(
    'graphs',
    'one rank alone, cast and unaligned, replayed and hashed',
    1,
    [
      { ...alone, shape: [64, 63], dtype: 'f32', castTo: 'bf16' },
      { ...alone, shape: [33, 31], dtype: 'u8', destinationStored: { offset: 1, padding: 3 } },
    ],
    { repeat: 5, capture: 'cold', verify: true },
  ),
  moveCase('graphs', 'replayed and hashed', 4, [crossed], { repeat: 10, capture: 'cold', verify: true }),
];

function groupCases(): readonly M2nCase[] {
  return [
    moveCase('groups', '300 small tensors in one transfer', 4, many(300), {
      reports: ['huggingface/trl#5249', 'NVIDIA-NeMo/RL#449'],
    }),
    moveCase('groups', '40 tensors of mixed kinds, five refits', 8, mixed(), { repeat: 5 }),
    moveCase('groups', 'weights, biases and norms of a layer, hashed', 8, layer(), {
      repeat: 3,
      verify: true,
      reports: ['vllm-project/vllm#52689', 'OpenRLHF/OpenRLHF#660'],
    }),
  ];
}

function many(count: number): readonly TensorSpec[] {
  return Array.from({ length: count }, (_, i) => ({
    shape: [4 + (i % 5), 3 + (i % 7)],
    dtype: 'bf16',
    source: line(2, shard(i % 2)),
    destination: line(2, shard(i % 3 === 0 ? 0 : 1), 2),
  }));
}

function mixed(): readonly TensorSpec[] {
  const types: readonly DType[] = ['f32', 'u8', 'f8e4m3', 'i64', 'bf16'];
  return Array.from({ length: 40 }, (_, i) => ({
    shape: i % 4 === 0 ? [17 + i] : [8 + (i % 9), 12, 1 + (i % 3)].slice(0, 2 + (i % 2)),
    dtype: types[i % types.length]!,
    source: i % 3 === 0 ? line(4, replicate()) : grid(2, 2, [shard(0), replicate()]),
    destination: i % 2 === 0 ? line(4, shard(0), 4) : grid(2, 2, [replicate(), shard(0)], 4),
    sourceStored: { offset: i % 4 },
    destinationStored: { offset: (3 * i) % 5 },
  }));
}

/** Trainer TP 4 to engine TP 2 x DP 2. */
function layer(): readonly TensorSpec[] {
  const hidden = 32;
  const parameter = (
    shape: readonly number[],
    trainer: TensorSpec['source'],
    engine: TensorSpec['source'],
  ): TensorSpec => ({
    shape,
    dtype: 'bf16',
    source: trainer,
    destination: engine,
  });
  const column = [line(4, shard(0)), grid(2, 2, [replicate(), shard(0)], 4)] as const;
  const row = [line(4, shard(1)), grid(2, 2, [replicate(), shard(1)], 4)] as const;
  const whole = [line(4, replicate()), line(4, replicate(), 4)] as const;
  const fused = [line(4, shard(0, strided(2))), grid(2, 2, [replicate(), shard(0, strided(2))], 4)] as const;
  return [
    parameter([hidden], ...whole),
    parameter([2 * hidden, hidden], ...column),
    parameter([2 * hidden], ...column),
    parameter([hidden, 2 * hidden], ...row),
    parameter([hidden], ...whole),
    parameter([8 * hidden, hidden], ...fused),
    parameter([hidden, 4 * hidden], ...row),
  ];
}
