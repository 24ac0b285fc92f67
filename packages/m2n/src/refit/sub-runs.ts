// SPDX-License-Identifier: Apache-2.0
// Cuts what a rank holds of a dimension to a range of local indices, so that large tensors are handled in bounded pieces.

import { type DimRuns, dimRuns, type RunPiece } from '@nccl-ext/core';

/** The runs behind local indices [from, to) of `dim`, with local offsets from 0. */
export function subRuns(dim: DimRuns, from: number, to: number): DimRuns {
  const pieces: RunPiece[] = [];
  for (const { start, length, stride, count, local } of dim.runs) {
    const first = Math.max(0, Math.floor((from - local) / length));
    const last = Math.min(count, Math.ceil((to - local) / length));
    for (let i = first; i < last; i++) {
      const lower = Math.max(from, local + i * length);
      const upper = Math.min(to, local + (i + 1) * length);
      if (upper > lower)
        pieces.push({ start: start + i * stride + (lower - local - i * length), length: upper - lower });
    }
  }
  return dimRuns(pieces);
}
