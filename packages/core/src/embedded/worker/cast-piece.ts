// SPDX-License-Identifier: Apache-2.0
// Converts a piece between float dtypes: by a kernel in place inside one block, else a tile at a time through scratch.

import { offsetOf } from '../memory/address.js';
import { bytesAt } from '../memory/space.js';
import { forEachRow, type Piece } from './piece.js';
import type { Spaces } from './spaces.js';

/** Bytes per element of the dtypes f64, f32, f16, bf16, f8e4m3 and f8e5m2, by code. */
const sizes = [8, 4, 2, 2, 1, 1] as const;

/** Elements per tile, and where tiles lie in the scratch area; the kernel uses its first 8 KiB. */
const tile = 2048;
const tileSource = 16_384;
const tileDestination = 32_768;

/** Bytes of one element, undefined when the dtype does not convert. */
export function castSize(code: number): number | undefined {
  return sizes[code];
}

export function castPiece(spaces: Spaces, piece: Piece, from: number, to: number): void {
  const source = spaces.of(piece.source);
  const destination = spaces.of(piece.destination);
  const [fromSize, toSize] = [sizes[from]!, sizes[to]!];
  const kernels = source === destination ? spaces.kernels(source) : undefined;
  if (kernels !== undefined) {
    const { inner, c1, c2, d0, d1, d2, s0, s1, s2, i0, i1, i2, count } = piece;
    const [d, s] = [offsetOf(piece.destination), offsetOf(piece.source)];
    const tiles = spaces.scratchOffset;
    // biome-ignore format: in the order of cast.wat
    kernels.castRuns(from, to, toSize, fromSize, tiles, d, s, inner, c1, c2, d0, d1, d2, s0, s1, s2, i0, i1, i2, count);
    return;
  }
  const scratch = spaces.scratch;
  forEachRow(piece, (rowSource, rowDestination, runs) => {
    for (let run = 0; run < runs; run++) {
      const s = offsetOf(rowSource) + run * piece.s2;
      const d = offsetOf(rowDestination) + run * piece.d2;
      for (let done = 0; done < piece.inner; done += tile) {
        const part = Math.min(tile, piece.inner - done);
        scratch.bytes.set(bytesAt(source, s + done * fromSize, part * fromSize), tileSource);
        // biome-ignore format: in the order of cast.wat
        scratch.kernels.castRuns(
          from, to, toSize, fromSize, scratch.start, scratch.start + tileDestination, scratch.start + tileSource, part, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
        const end = tileDestination + part * toSize;
        bytesAt(destination, d + done * toSize, part * toSize).set(
          scratch.bytes.subarray(tileDestination, end),
        );
      }
    }
  });
}
