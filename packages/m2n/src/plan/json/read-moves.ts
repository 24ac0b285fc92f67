// SPDX-License-Identifier: Apache-2.0
// Reads columns of numbers from a stored plan; every number is checked, because offsets become memory accesses.

import { NcclExtError } from '@nccl-ext/core';
import { type MoveTable, moveLoops } from '@nccl-ext/core/contract';

/** What indices in a table may be. */
export interface MoveLimits {
  readonly worldSize: number;
  readonly tensors: number;
}

/** @throws ERR_INVALID_ARGUMENT naming the entry at fault. */
export function readMoves(
  columns: Readonly<Record<string, readonly unknown[]>>,
  field: string,
  { worldSize, tensors }: MoveLimits,
): MoveTable {
  const length = columns.peer!.length;
  const column = <A extends Int32Array | Uint8Array | Uint16Array | Float64Array>(
    name: string,
    into: A,
    limit: number = Number.MAX_SAFE_INTEGER + 1,
    least = 0,
  ): A => readColumn(columns[name]!, `${field}.${name}`, into, limit, least);
  const loops = length * moveLoops;
  const table = {
    length,
    peer: column('peer', new Int32Array(length), worldSize),
    stage: column('stage', new Uint8Array(length), 2),
    tensor: column('tensor', new Int32Array(length), tensors),
    sourceTensor: column('sourceTensor', new Int32Array(length), tensors),
    sourceOffset: column('sourceOffset', new Float64Array(length)),
    destinationOffset: column('destinationOffset', new Float64Array(length)),
    inner: column('inner', new Float64Array(length), undefined, 1),
    counts: column('counts', new Float64Array(loops), undefined, 1),
    sourceStrides: column('sourceStrides', new Float64Array(loops)),
    destinationStrides: column('destinationStrides', new Float64Array(loops)),
    transform: column('transform', new Uint16Array(length), 2 ** 16),
  };
  for (let i = 1; i < length; i++) {
    const order =
      table.stage[i - 1]! - table.stage[i]! ||
      table.peer[i - 1]! - table.peer[i]! ||
      table.tensor[i - 1]! - table.tensor[i]!;
    if (order > 0) throw malformed(`${field}.peer[${i}]`, 'moves must be sorted by stage, peer and tensor');
  }
  return table;
}

/** Distinct ranks, ascending. */
export function readRanks(values: readonly unknown[], field: string, worldSize: number): Int32Array {
  const ranks = readColumn(values, field, new Int32Array(values.length), worldSize, 0);
  for (let i = 1; i < ranks.length; i++) {
    if (ranks[i - 1]! >= ranks[i]!) throw malformed(`${field}[${i}]`, 'ranks must ascend');
  }
  return ranks;
}

function readColumn<A extends Int32Array | Uint8Array | Uint16Array | Float64Array>(
  values: readonly unknown[],
  field: string,
  into: A,
  limit: number,
  least: number,
): A {
  if (values.length !== into.length) {
    throw malformed(field, `must have ${into.length} entries, as there are moves, got ${values.length}`);
  }
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value >= limit) {
      throw malformed(
        `${field}[${i}]`,
        `must be an integer from ${least} to ${limit - 1}, got ${JSON.stringify(value)}`,
      );
    }
    into[i] = value;
  }
  return into;
}

/** An error about an entry of a stored plan. */
export function malformed(field: string, problem: string): NcclExtError {
  return new NcclExtError('ERR_INVALID_ARGUMENT', `The plan is malformed: ${field} ${problem}.`, {
    field,
    help: 'Write it with plan.toJSON(); docs/plan-format.md describes the format.',
  });
}
