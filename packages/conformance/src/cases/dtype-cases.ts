// SPDX-License-Identifier: Apache-2.0
// Every element type moves unchanged, and every pair of float types converts.

import { type DType, dtypes, isFloatDType, replicate, shard, strided } from '@nccl-ext/core';
import type { M2nCase, TensorSpec } from './case.js';
import { grid, line, moveCase } from './side.js';

const floats: readonly DType[] = dtypes.filter(isFloatDType);

export const dtypeCases: readonly M2nCase[] = [
  ...dtypes.map((dtype) => moveCase('dtypes', `${dtype} rows to columns`, 4, [crossed(dtype)])),
  ...dtypes.map((dtype) =>
    moveCase('dtypes', `${dtype} rows to rows times replicas`, 6, [
      {
        shape: [37, 24],
        dtype,
        source: line(2, shard(0)),
        destination: grid(2, 2, [shard(0), replicate()], 2),
      },
    ]),
  ),
  ...floats.flatMap((from) =>
    floats
      .filter((to) => to !== from)
      .map((to) =>
        moveCase('casts', `${from} to ${to}`, 4, [{ ...crossed(from), castTo: to }, gateUp(from, to)]),
      ),
  ),
  moveCase('casts', 'all pairs in one transfer', 4, [
    ...floats.flatMap((from) => floats.filter((to) => to !== from).map((to) => gateUp(from, to))),
  ]),
];

function crossed(dtype: DType): TensorSpec {
  return { shape: [60, 52], dtype, source: line(2, shard(0)), destination: line(2, shard(1), 2) };
}

/** Runs of odd lengths, so that conversions start and end inside vector registers. */
function gateUp(dtype: DType, castTo: DType): TensorSpec {
  return {
    shape: [7, 66],
    dtype,
    castTo,
    source: line(2, shard(1, strided(2))),
    destination: line(2, shard(1), 2),
    sourceStored: { offset: 1 },
    destinationStored: { offset: 3 },
  };
}
