// SPDX-License-Identifier: Apache-2.0
// Proves that a transfer never writes what it still reads, and never writes one byte for two tensors.
//
// Tensors may share a buffer, even with rows of one between rows of the other. So extents are compared first, which settles
// nearly every case, and only tensors whose extents meet are compared run by run.

import type { ErrorRecord, MoveTable } from '../../contract/index.js';
import { errorRecord } from '../host/errors.js';
import { extentOf, isEmptyMove, unitBytes } from './move-extent.js';
import type { PreparePart } from './prepare-part.js';
import { runsMeet, type TouchedMove } from './touched-runs.js';

interface Touched {
  readonly tensor: number;
  readonly writes: boolean;
  start: number;
  end: number;
}

type Visit = (table: MoveTable, move: number, writes: boolean) => void;

/** The first conflict on any rank, by the rank that it is on. */
export function checkOverlap(parts: readonly PreparePart[]): ErrorRecord | undefined {
  for (const part of parts) {
    const conflict = firstConflict(part, parts);
    if (conflict === undefined) continue;
    const [a, b] = conflict;
    return errorRecord(
      'ERR_OVERLAP',
      'prepareTransfer',
      `on rank ${part.rank.rank}, ${describe(a)} and ${describe(b)} share bytes`,
      {
        rank: part.rank.rank,
        peer: part.rank.rank,
        expected: 'separate bytes',
        seen: Math.min(a.end, b.end) - Math.max(a.start, b.start),
        help: 'Bind destinations to memory that no source and no other destination uses.',
      },
    );
  }
  return undefined;
}

/** Two tensors of a rank that share a byte, at least one of them written. */
function firstConflict(
  part: PreparePart,
  parts: readonly PreparePart[],
): readonly [Touched, Touched] | undefined {
  let open: Touched[] = [];
  for (const entry of extentsOn(part, parts)) {
    open = open.filter((other) => other.end > entry.start);
    for (const other of open) {
      if (!entry.writes && !other.writes) continue;
      if (runsMeet(movesOf(entry, part, parts), movesOf(other, part, parts))) return [other, entry];
    }
    open.push(entry);
  }
  return undefined;
}

/** From where to where each tensor is touched, by start. */
function extentsOn(part: PreparePart, parts: readonly PreparePart[]): readonly Touched[] {
  const tensors = new Map<number, Touched>();
  forEachTouch(part, parts, (table, move, writes) => {
    const tensor = (writes ? table.tensor : table.sourceTensor)[move]!;
    const { start, strides, unit } = sideOf(part, table, move, writes);
    const end = start + extentOf(table, move, strides, unit);
    const key = tensor * 2 + (writes ? 1 : 0);
    const entry = tensors.get(key);
    if (entry === undefined) tensors.set(key, { tensor, writes, start, end });
    else {
      entry.start = Math.min(entry.start, start);
      entry.end = Math.max(entry.end, end);
    }
  });
  return [...tensors.values()].sort((a, b) => a.start - b.start);
}

/** The moves behind an extent. */
function movesOf(
  { tensor, writes }: Touched,
  part: PreparePart,
  parts: readonly PreparePart[],
): readonly TouchedMove[] {
  const moves: TouchedMove[] = [];
  forEachTouch(part, parts, (table, move, written) => {
    if (written !== writes || (writes ? table.tensor : table.sourceTensor)[move] !== tensor) return;
    const { start, strides, unit } = sideOf(part, table, move, writes);
    moves.push({ table, move, start, strides, runBytes: table.inner[move]! * unit });
  });
  return moves;
}

/** Visits what stage 0 reads on a rank and what all ranks write there. Stage 1 reads what was written. */
function forEachTouch(part: PreparePart, parts: readonly PreparePart[], visit: Visit): void {
  const { rank } = part.rank;
  const own = part.program.sends;
  for (let move = 0; move < own.length; move++)
    if (own.stage[move] === 0 && !isEmptyMove(own, move)) visit(own, move, false);
  for (const { program } of parts) {
    const { sends } = program;
    for (let move = 0; move < sends.length; move++)
      if (sends.peer[move] === rank && !isEmptyMove(sends, move)) visit(sends, move, true);
  }
}

/** The first address of a move on one side, with the side's strides and unit. */
function sideOf(
  part: PreparePart,
  table: MoveTable,
  move: number,
  writes: boolean,
): { readonly start: number; readonly strides: Float64Array; readonly unit: number } {
  const binding = (
    writes ? part.destinations[table.tensor[move]!] : part.sources[table.sourceTensor[move]!]
  )!;
  const offset = (writes ? table.destinationOffset : table.sourceOffset)[move]!;
  const unit = unitBytes(table.transform[move]!)!;
  return {
    start: binding.buffer.address + binding.byteOffset + offset,
    strides: writes ? table.destinationStrides : table.sourceStrides,
    unit: writes ? unit.destination : unit.source,
  };
}

function describe(touched: Touched): string {
  return `${touched.writes ? 'destination' : 'source'} tensor ${touched.tensor}`;
}
