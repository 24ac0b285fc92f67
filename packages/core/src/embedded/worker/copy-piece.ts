// SPDX-License-Identifier: Apache-2.0
// Copies a piece: by a kernel inside one block, by typed arrays between blocks and in blocks beyond 4 GiB.

import { offsetOf } from '../memory/address.js';
import { bytesAt, type Space } from '../memory/space.js';
import { forEachRow, type Piece } from './piece.js';
import type { Spaces } from './spaces.js';

// From this length on one `set` per run is faster than a loop over words (measured on Node 20).
const longRun = 192;
// Windows stay well below the 2^32 elements of a typed array.
const windowBytes = 2 ** 31;

// One loop per size of word.
const loops: Readonly<Record<number, LoopRuns>> = {
  1: makeLoop(),
  2: makeLoop(),
  4: makeLoop(),
  8: makeLoop(),
};

type Words = Uint8Array | Uint16Array | Int32Array | BigUint64Array;

export function copyPiece(spaces: Spaces, piece: Piece): void {
  const source = spaces.of(piece.source);
  const destination = spaces.of(piece.destination);
  const kernels = source === destination ? spaces.kernels(source) : undefined;
  if (kernels === undefined) {
    copyByViews(source, destination, piece);
    return;
  }
  const { inner, c1, c2, d0, d1, d2, s0, s1, s2, i0, i1, i2, count } = piece;
  const to = offsetOf(piece.destination);
  const from = offsetOf(piece.source);
  kernels.copyRuns(to, from, inner, c1, c2, d0, d1, d2, s0, s1, s2, i0, i1, i2, count);
}

function copyByViews(source: Space, destination: Space, piece: Piece): void {
  const { inner, s2, d2 } = piece;
  const size = inner >= longRun ? 1 : wordSize(piece);
  forEachRow(piece, (from, to, runs) => {
    const most = Math.max(1, Math.floor(windowBytes / Math.max(s2, d2, inner)));
    for (let done = 0; done < runs; done += most) {
      const part = Math.min(most, runs - done);
      const s = offsetOf(from) + done * s2;
      const d = offsetOf(to) + done * d2;
      const read = words(source, size, s, (part - 1) * s2 + inner);
      const write = words(destination, size, d, (part - 1) * d2 + inner);
      if (inner >= longRun) setRuns(read as Uint8Array, write as Uint8Array, part, inner, s2, d2);
      else loops[size]!(read, write, part, inner / size, s2 / size, d2 / size);
    }
  });
}

/** The widest word that every run of the piece starts and ends at a multiple of. */
function wordSize(piece: Piece): number {
  const { source, destination, inner, s0, s1, s2, d0, d1, d2 } = piece;
  for (const size of [8, 4, 2]) {
    if ([source, destination, inner, s0, s1, s2, d0, d1, d2].every((value) => value % size === 0))
      return size;
  }
  return 1;
}

// 64-bit integers, not floats: an engine may change the bits of a NaN that passes through a variable.
function words(space: Space, size: number, offset: number, bytes: number): Words {
  if (size === 1) return bytesAt(space, offset, bytes);
  if (size === 2) return new Uint16Array(space.buffer, offset, bytes / 2);
  if (size === 4) return new Int32Array(space.buffer, offset, bytes / 4);
  return new BigUint64Array(space.buffer, offset, bytes / 8);
}

function setRuns(
  read: Uint8Array,
  write: Uint8Array,
  runs: number,
  inner: number,
  sourceStride: number,
  destinationStride: number,
): void {
  for (let run = 0; run < runs; run++) {
    const from = run * sourceStride;
    write.set(read.subarray(from, from + inner), run * destinationStride);
  }
}

type LoopRuns = (
  read: Words,
  write: Words,
  runs: number,
  inner: number,
  sourceStride: number,
  destinationStride: number,
) => void;

/** A loop over words that sees one type of array only, which the engine can then compile well. */
function makeLoop(): LoopRuns {
  return (read, write, runs, inner, sourceStride, destinationStride) => {
    for (let run = 0; run < runs; run++) {
      const from = run * sourceStride;
      const to = run * destinationStride;
      for (let k = 0; k < inner; k++) write[to + k] = read[from + k]!;
    }
  };
}
