// SPDX-License-Identifier: Apache-2.0
// Whether two sets of strided moves touch a common byte, run by run.

import { type MoveTable, moveLoops } from '../../contract/index.js';

/** One side of a move, from address `start` on. */
export interface TouchedMove {
  readonly table: MoveTable;
  readonly move: number;
  readonly start: number;
  readonly strides: Float64Array;
  readonly runBytes: number;
}

/** Runs that one comparison lists at most; a larger pair counts as overlapping, so that nothing wrong passes. */
const maxRuns = 4_000_000;

export function runsMeet(a: readonly TouchedMove[], b: readonly TouchedMove[]): boolean {
  const runs = countRuns(a) + countRuns(b);
  if (runs > maxRuns) return true;
  const [first, second] = [listRuns(a), listRuns(b)];
  for (let i = 0, k = 0; i < first.length && k < second.length; ) {
    const [start, end] = [first[i]!, first[i + 1]!];
    const [otherStart, otherEnd] = [second[k]!, second[k + 1]!];
    if (start < otherEnd && otherStart < end) return true;
    if (end <= otherStart) i += 2;
    else k += 2;
  }
  return false;
}

/** Starts and ends of all runs, merged where a run follows another, sorted. */
function listRuns(moves: readonly TouchedMove[]): Float64Array {
  const starts: [number, number][] = [];
  for (const touched of moves) forEachRun(touched, (start) => starts.push([start, start + touched.runBytes]));
  starts.sort((a, b) => a[0] - b[0]);
  const merged: number[] = [];
  for (const [start, end] of starts) {
    const last = merged.length - 1;
    if (last > 0 && merged[last]! >= start) merged[last] = Math.max(merged[last]!, end);
    else merged.push(start, end);
  }
  return Float64Array.from(merged);
}

function forEachRun({ table, move, start, strides }: TouchedMove, visit: (start: number) => void): void {
  const at = move * moveLoops;
  for (let i = 0; i < table.counts[at]!; i++)
    for (let j = 0; j < table.counts[at + 1]!; j++)
      for (let k = 0; k < table.counts[at + 2]!; k++)
        visit(start + i * strides[at]! + j * strides[at + 1]! + k * strides[at + 2]!);
}

function countRuns(moves: readonly TouchedMove[]): number {
  return moves.reduce((sum, { table, move }) => {
    const at = move * moveLoops;
    return sum + table.counts[at]! * table.counts[at + 1]! * table.counts[at + 2]!;
  }, 0);
}
