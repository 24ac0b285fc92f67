// SPDX-License-Identifier: Apache-2.0
// Which bytes a move of a table touches, on either side.

import { castOf, type MoveTable, moveLoops } from '../../contract/index.js';
import { castSize } from '../worker/cast-piece.js';

/** Bytes of a source and of a destination unit; undefined for a conversion that kernels do not know. */
interface UnitBytes {
  readonly source: number;
  readonly destination: number;
}

const byte: UnitBytes = { source: 1, destination: 1 };

/** The size of one unit of `inner`. */
export function unitBytes(transform: number): UnitBytes | undefined {
  const cast = castOf(transform);
  if (cast === undefined) return byte;
  const source = castSize(cast.from);
  const destination = castSize(cast.to);
  return source === undefined || destination === undefined ? undefined : { source, destination };
}

/** Whether a move has nothing to do. */
export function isEmptyMove(table: MoveTable, move: number): boolean {
  if (table.inner[move] === 0) return true;
  for (let loop = 0; loop < moveLoops; loop++) if (table.counts[move * moveLoops + loop] === 0) return true;
  return false;
}

/** Bytes from the first to beyond the last byte that a non-empty move touches, relative to its offset. */
export function extentOf(table: MoveTable, move: number, strides: Float64Array, unit: number): number {
  let extent = table.inner[move]! * unit;
  for (let loop = 0; loop < moveLoops; loop++) {
    const at = move * moveLoops + loop;
    extent += (table.counts[at]! - 1) * strides[at]!;
  }
  return extent;
}
