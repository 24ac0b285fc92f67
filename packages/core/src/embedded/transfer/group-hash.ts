// SPDX-License-Identifier: Apache-2.0
// The hash that a verified transfer compares: what it is, for every backend, and how workers compute it.
//
// DEFINITION. A group is all moves of one (sender, receiver, stage, tensor), in the sender's order. Its runs are the
// innermost runs of the moves, move after move, outer loops in row-major order, as bytes of the destination dtype. Every run
// is cut into 8-byte little-endian words from its first byte on; a last word of 1 to 7 bytes is filled up with zero
// bytes above. Words are numbered 0, 1, 2, ... through all runs of the group. Its hash is the sum modulo 2^64 over all words of
//
//     mix(word + (number + 1) * 0x9E3779B97F4A7C15)      where
//     mix(x): x ^= x >> 30; x *= 0xBF58476D1CE4E5B9; x ^= x >> 27; x *= 0x94D049BB133111EB; x ^= x >> 31
//
// in unsigned 64-bit arithmetic. A sum needs no order, so runs may be hashed by any thread; mix is a bijection, so one
// changed word always changes the hash. The sender hashes what it writes, before it can be damaged on the way (the source
// bytes of a copy, the converted elements of a cast); the receiver hashes what lies in its memory afterwards.
//
// CUDA backends have another mix (native/m2n/shared/hash.hpp), a bijection too, of what a GPU does in one instruction. One backend
// hashes both ends.

import { offsetOf } from '../memory/address.js';
import { bytesAt, type Space, scratchBytes } from '../memory/space.js';
import { forEachRow, type Piece } from '../worker/piece.js';
import type { Spaces } from '../worker/spaces.js';

// Whole words, and room for the vector that kernels may read beyond the end.
const tile = 32_768;
/** Where a kernel leaves its sum in the scratch area, in bytes. */
const sumAt = scratchBytes - 8;

/** Words of one run. */
export function wordsOf(runBytes: number): number {
  return Math.ceil(runBytes / 8);
}

/**
 * Adds the words of a piece, the first of which has number `index`, to the 64-bit sum in words `sum` and `sum + 1` of `into`.
 * Reads the source side of the piece, whose `inner` counts bytes.
 */
export function hashPiece(spaces: Spaces, piece: Piece, index: number, into: Space, sum: number): void {
  const space = spaces.of(piece.source);
  const kernels = spaces.kernels(space);
  if (kernels !== undefined) {
    const { inner, c1, c2, s0, s1, s2, i0, i1, i2, count } = piece;
    const out = spaces.scratchOffset + sumAt;
    kernels.hashRuns(offsetOf(piece.source), inner, c1, c2, s0, s1, s2, i0, i1, i2, count, index, out);
    addTo(into.i32, sum, space.i32, out / 4);
    return;
  }
  const { bytes, words, start, kernels: scratchKernels } = spaces.scratch;
  let word = index;
  forEachRow(piece, (rowSource, _destination, runs) => {
    for (let run = 0; run < runs; run++) {
      const from = offsetOf(rowSource) + run * piece.s2;
      for (let done = 0; done < piece.inner; done += tile) {
        const part = Math.min(tile, piece.inner - done);
        bytes.set(bytesAt(space, from + done, part));
        scratchKernels.hashRuns(start, part, 1, 1, 0, 0, 0, 0, 0, 0, 1, word, start + sumAt);
        addTo(into.i32, sum, words, sumAt / 4);
        word += wordsOf(part);
      }
    }
  });
}

/** Adds 64-bit integers by halves: BigInt costs more than the hash of a short run. */
function addTo(sums: Int32Array, sum: number, values: Int32Array, value: number): void {
  const low = (sums[sum]! >>> 0) + (values[value]! >>> 0);
  const carry = low >= 2 ** 32 ? 1 : 0;
  sums[sum] = low | 0;
  sums[sum + 1] = (sums[sum + 1]! + values[value + 1]! + carry) | 0;
}
