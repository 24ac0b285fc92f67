// SPDX-License-Identifier: Apache-2.0
// How many bytes a move writes at its destination.

import { dtypeBytes, dtypes } from '@nccl-ext/core';
import { castOf, type MoveTable, moveLoops } from '@nccl-ext/core/contract';

/** Bytes that move `index` of a table writes. */
export function moveBytes(table: MoveTable, index: number): number {
  const cast = castOf(table.transform[index]!);
  let units = table.inner[index]!;
  for (let loop = 0; loop < moveLoops; loop++) units *= table.counts[index * moveLoops + loop]!;
  return cast === undefined ? units : units * dtypeBytes(dtypes[cast.to]!);
}

/** Bytes that all moves of a table write. */
export function tableBytes(table: MoveTable): number {
  let total = 0;
  for (let index = 0; index < table.length; index++) total += moveBytes(table, index);
  return total;
}
