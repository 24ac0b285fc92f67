// SPDX-License-Identifier: Apache-2.0
// The configurations that a trainer and an engine with one sharded dimension each can have, at 4, 8 and 16 ranks: sources first.
// They cover the matrix of NVIDIA's nccl_m2n 0.2.0 tests; what does not divide is sharded unevenly instead of skipped.

import { type DType, replicate, shard } from '@nccl-ext/core';
import type { M2nCase } from './case.js';
import type { GroupName } from './groups.js';
import { line, moveCase, shardsTimesReplicas } from './side.js';

const worlds: readonly number[] = [4, 8, 16];
const orders: readonly (readonly ['sr' | 'rs', 'sr' | 'rs'])[] = [
  ['sr', 'sr'],
  ['rs', 'rs'],
  ['sr', 'rs'],
  ['rs', 'sr'],
];
const dimsOf2d: readonly string[] = ['00', '01', '10', '11'];
const dimsOf3d: readonly string[] = ['00', '01', '02', '20', '10', '11', '12'];
/** One dtype per element size. */
const sized: readonly DType[] = ['f32', 'bf16', 'i8'];

/** All of them. */
export const gridCases: readonly M2nCase[] = [
  ...sized.flatMap((dtype) => worlds.map((ranks) => replication([200, 200], dtype, ranks))),
  replication([4], 'i8', 4),
  ...lines('sharding', [200, 200], sized, dimsOf2d, worlds),
  ...lines('sharding', [4096], ['u8', 'bf16'], ['00'], [2]),
  ...lines('sharding', [4], ['bf16'], ['00'], [4]),
  ...meshes(
    'mesh-2d',
    [200, 200],
    [
      [2, 4],
      [4, 2],
      [2, 2],
    ],
    dimsOf2d,
    [1, 1],
  ),
  ...meshes('rank-ratio', [240, 240], [[2, 2]], dimsOf2d, [3, 1]),
  ...meshes('rank-ratio', [240, 240], [[2, 2]], dimsOf2d, [1, 3]),
  ...(
    [
      [576, 576],
      [384, 768],
      [384, 384],
    ] as const
  ).flatMap((shape) => meshes('tensor-size', shape, [[4, 4]], dimsOf2d, [1, 1])),
  ...lines('three-dims', [64, 128, 128], ['bf16'], dimsOf3d, worlds),
  ...lines('three-dims', [128, 64, 64], ['bf16'], dimsOf3d, worlds),
  expertsToTensorParallel(),
  ...lines('one-dim', [8192], sized, ['00'], worlds),
  ...meshes(
    'one-dim',
    [8192],
    [
      [2, 4],
      [4, 2],
      [2, 2],
    ],
    ['00'],
    [1, 1],
  ),
  ...meshes('one-dim', [16_384], [[2, 2]], ['00'], [3, 1]),
  ...meshes('one-dim', [16_384], [[2, 2]], ['00'], [1, 3]),
  ...meshes('one-dim', [16_384], [[4, 4]], ['00'], [1, 1]),
  ...meshes('one-dim', [1_048_576], [[4, 4]], ['00'], [1, 1], [8]),
];

/** The big ones of the same matrix, at 8 ranks. */
export const largeGridCases: readonly M2nCase[] = [
  ...(
    [
      [3072, 6144],
      [3072, 3072],
    ] as const
  ).flatMap((shape) => meshes('large', shape, [[4, 4]], dimsOf2d, [1, 1], [8])),
  ...meshes('large', [4_194_304], [[4, 4]], ['00'], [1, 1], [8]),
];

function replication(shape: readonly number[], dtype: DType, ranks: number): M2nCase {
  return moveCase('replication', `${shape.join('x')} ${dtype} on ${ranks}`, ranks, [
    {
      shape,
      dtype,
      source: line(ranks / 2, replicate()),
      destination: line(ranks / 2, replicate(), ranks / 2),
    },
  ]);
}

/** One axis on each side, for every pair of dims ("01": from dim 0 to dim 1). */
function lines(
  group: GroupName,
  shape: readonly number[],
  dtypes: readonly DType[],
  dims: readonly string[],
  ranksOf: readonly number[],
): M2nCase[] {
  return dtypes.flatMap((dtype) =>
    dims.flatMap((pair) =>
      ranksOf.map((ranks) =>
        moveCase(group, `${shape.join('x')} ${dtype} dims ${pair} on ${ranks}`, ranks, [
          {
            shape,
            dtype,
            source: line(ranks / 2, shard(Number(pair[0]))),
            destination: line(ranks / 2, shard(Number(pair[1])), ranks / 2),
          },
        ]),
      ),
    ),
  );
}

/** First axes of the given sizes on each side, the second axis takes the other ranks; only grids that exist. */
function meshes(
  group: GroupName,
  shape: readonly number[],
  firstAxes: readonly (readonly [number, number])[],
  dims: readonly string[],
  ratio: readonly [number, number],
  ranksOf: readonly number[] = worlds,
): M2nCase[] {
  const parts = ratio[0] + ratio[1];
  return ranksOf.flatMap((ranks) => {
    const sources = (ranks * ratio[0]) / parts;
    const destinations = ranks - sources;
    return firstAxes
      .filter(([from, to]) => sources % from === 0 && destinations % to === 0)
      .flatMap(([from, to]) =>
        orders.flatMap((order) =>
          dims.map((pair) => {
            const sides = `${order[0]}${from}x${sources / from} to ${order[1]}${to}x${destinations / to}`;
            return moveCase(group, `${shape.join('x')} bf16 ${sides} dims ${pair}`, ranks, [
              {
                shape,
                dtype: 'bf16',
                source: shardsTimesReplicas(order[0], [from, sources / from], Number(pair[0])),
                destination: shardsTimesReplicas(order[1], [to, destinations / to], Number(pair[1]), sources),
              },
            ]);
          }),
        ),
      );
  });
}

/** Experts x rows x columns, data times expert parallel to data times tensor parallel, scaled down from 128 to 128 ranks. */
function expertsToTensorParallel(): M2nCase {
  return moveCase('three-dims', 'experts 2x4 to columns 2x4', 16, [
    {
      shape: [16, 448, 128],
      dtype: 'bf16',
      source: shardsTimesReplicas('rs', [2, 4], 0),
      destination: shardsTimesReplicas('rs', [2, 4], 2, 8),
    },
  ]);
}
