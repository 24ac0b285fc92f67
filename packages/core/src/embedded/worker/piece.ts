// SPDX-License-Identifier: Apache-2.0
// A part of a strided move that one step does: some whole runs, or part of one run.

/** Strides and offsets in bytes, `inner` in units (bytes of a copy, elements of a cast). */
export interface Piece {
  source: number;
  destination: number;
  inner: number;
  c1: number;
  c2: number;
  s0: number;
  s1: number;
  s2: number;
  d0: number;
  d1: number;
  d2: number;
  /** Loop position of the first run. */
  i0: number;
  i1: number;
  i2: number;
  /** Runs. */
  count: number;
}

export function emptyPiece(): Piece {
  return {
    source: 0,
    destination: 0,
    inner: 0,
    c1: 1,
    c2: 1,
    s0: 0,
    s1: 0,
    s2: 0,
    d0: 0,
    d1: 0,
    d2: 0,
    i0: 0,
    i1: 0,
    i2: 0,
    count: 1,
  };
}

/** Calls `row` for every stretch of the innermost loop with its first addresses and its number of runs. */
export function forEachRow(
  piece: Piece,
  row: (source: number, destination: number, runs: number) => void,
): void {
  let { i0, i1, i2, count } = piece;
  while (count > 0) {
    const runs = Math.min(piece.c2 - i2, count);
    row(
      piece.source + i0 * piece.s0 + i1 * piece.s1 + i2 * piece.s2,
      piece.destination + i0 * piece.d0 + i1 * piece.d1 + i2 * piece.d2,
      runs,
    );
    count -= runs;
    i2 = 0;
    if (++i1 === piece.c1) {
      i1 = 0;
      i0++;
    }
  }
}
