// SPDX-License-Identifier: Apache-2.0
// Proves that the moves of a stored plan stay inside the tensors that they name: a buffer may hold other tensors behind them.

import { dtypeBytes, dtypes } from '@nccl-ext/core';
import { castTransform, type MoveTable, moveLoops } from '@nccl-ext/core/contract';
import type { PlannedTensor } from '../executable-plan.js';
import { malformed } from './read-moves.js';

/** One past the last byte of a tensor that a rank holds on a side; undefined where it holds none. */
export type ReachOf = (side: 'source' | 'destination', tensor: number, rank: number) => number | undefined;

/** @throws ERR_INVALID_ARGUMENT naming the first entry of `rank`'s moves that leaves its tensor. */
export function checkMoves(
  table: MoveTable,
  field: string,
  rank: number,
  { tensors, reachOf }: { readonly tensors: readonly PlannedTensor[]; readonly reachOf: ReachOf },
): void {
  for (let move = 0; move < table.length; move++) {
    const tensor = table.tensor[move]!;
    const sourceTensor = table.sourceTensor[move]!;
    const peer = table.peer[move]!;
    const forwards = table.stage[move] === 1;
    const { name, request, shape, sourceDType, destinationDType } = tensors[tensor]!;
    if (tensors[sourceTensor]!.request !== request)
      throw malformed(`${field}.sourceTensor[${move}]`, `is ${sourceTensor}, another tensor than ${name}`);

    const wanted = forwards ? 0 : transformBetween(sourceDType, destinationDType);
    const transform = table.transform[move]!;
    if (transform !== wanted) {
      const what = `${forwards ? destinationDType : sourceDType} to ${destinationDType}`;
      throw malformed(`${field}.transform[${move}]`, `must be ${wanted} for ${what}, got ${transform}`);
    }

    const read = wanted === 0 ? 1 : dtypeBytes(sourceDType);
    const written = wanted === 0 ? 1 : dtypeBytes(destinationDType);
    // A loop of stride 0 stays inside however often it runs; no move writes more than its tensor has.
    const bytes = unitsOf(table, move) * written;
    const whole = shape.reduce((product, extent) => product * extent, dtypeBytes(destinationDType));
    if (bytes > whole)
      throw malformed(
        `${field}.counts[${move * moveLoops}]`,
        `writes ${bytes} bytes of ${name}, which has ${whole}`,
      );

    const sourceSide = forwards ? 'destination' : 'source';
    const sourceEnd = table.sourceOffset[move]! + extentOf(table, move, table.sourceStrides, read);
    requireInside(
      `${field}.sourceOffset[${move}]`,
      name,
      rank,
      sourceEnd,
      reachOf(sourceSide, sourceTensor, rank),
    );
    const end = table.destinationOffset[move]! + extentOf(table, move, table.destinationStrides, written);
    requireInside(
      `${field}.destinationOffset[${move}]`,
      name,
      peer,
      end,
      reachOf('destination', tensor, peer),
    );
  }
}

function requireInside(
  field: string,
  name: string,
  rank: number,
  end: number,
  reach: number | undefined,
): void {
  if (reach === undefined) throw malformed(field, `is in ${name}, of which rank ${rank} holds nothing`);
  if (end > reach)
    throw malformed(field, `leads to byte ${end} of ${name}, which has ${reach} on rank ${rank}`);
}

function transformBetween(from: PlannedTensor['sourceDType'], to: PlannedTensor['sourceDType']): number {
  return from === to ? 0 : castTransform(dtypes.indexOf(from), dtypes.indexOf(to));
}

function unitsOf(table: MoveTable, move: number): number {
  let units = table.inner[move]!;
  for (let loop = 0; loop < moveLoops; loop++) units *= table.counts[move * moveLoops + loop]!;
  return units;
}

/** Bytes from the first that a move touches to one past the last. */
function extentOf(table: MoveTable, move: number, strides: Float64Array, unitBytes: number): number {
  let extent = table.inner[move]! * unitBytes;
  for (let loop = 0; loop < moveLoops; loop++) {
    const at = move * moveLoops + loop;
    extent += (table.counts[at]! - 1) * strides[at]!;
  }
  return extent;
}
