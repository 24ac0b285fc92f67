// SPDX-License-Identifier: Apache-2.0
// Walks over a part of a stored tensor in pieces of bounded size: which elements, and where their bytes lie.

import { type DimRuns, type DType, dtypeBytes } from '@nccl-ext/core';
import type { Part } from '../plan/side-pattern.js';
import type { ByteRange } from './host-access.js';
import { subRuns } from './sub-runs.js';

/** At most about this many bytes of a storage are in flight at once, gaps between rows included. */
const pieceBytes: number = 32 * 1024 * 1024;

/** A range of the first dimension of a part. */
export interface PartPiece {
  readonly dims: readonly DimRuns[];
  /** Elements of the piece. */
  readonly elements: number;
  /** Byte of the storage at which its first element lies. */
  readonly byteOffset: number;
  readonly byteStrides: readonly number[];
}

/** The pieces of `part`, in local order; an empty part has none. */
export function* partPieces(part: Part, dtype: DType): Generator<PartPiece> {
  const { dims, byteOffset, byteStrides } = part;
  const extents = dims.map((dim) => dim.extent);
  const elements = extents.reduce((product, extent) => product * extent, 1);
  if (elements === 0) return;
  const [rows = 1] = extents;
  const rowElements = elements / rows;
  const rowBytes = Math.max(rowElements * dtypeBytes(dtype), byteStrides[0] ?? 0);
  const step = Math.max(1, Math.floor(pieceBytes / rowBytes));
  if (rows <= step) {
    yield { dims, elements, byteOffset, byteStrides };
    return;
  }
  for (let row = 0; row < rows; row += step) {
    const end = Math.min(rows, row + step);
    yield {
      dims: [subRuns(dims[0]!, row, end), ...dims.slice(1)],
      elements: (end - row) * rowElements,
      byteOffset: byteOffset + row * byteStrides[0]!,
      byteStrides,
    };
  }
}

/** The bytes from the first to the last one of a piece, in a storage that starts at byte `base` of its buffer. */
export function pieceRange(piece: PartPiece, dtype: DType, base: number): ByteRange {
  const reach = (last: number, { extent }: DimRuns, d: number): number =>
    last + (extent - 1) * piece.byteStrides[d]!;
  return {
    byteOffset: base + piece.byteOffset,
    bytes: piece.dims.reduce(reach, dtypeBytes(dtype)),
  };
}

/** Whether the piece's bytes lie densely, row-major. */
export function isDense(piece: PartPiece, dtype: DType): boolean {
  let step = dtypeBytes(dtype);
  for (let d = piece.dims.length - 1; d >= 0; d--) {
    const { extent } = piece.dims[d]!;
    if (extent > 1 && piece.byteStrides[d] !== step) return false;
    step *= extent;
  }
  return true;
}

/** Byte offsets within the storage of every run of the last dimension that is dense, in local order, and its length in bytes. */
export function* denseRows(
  piece: PartPiece,
  dtype: DType,
): Generator<{ readonly byteOffset: number; readonly bytes: number }> {
  const size = dtypeBytes(dtype);
  const extents = piece.dims.map((dim) => dim.extent);
  const inner = extents.at(-1) ?? 1;
  const dense = inner === 1 || (piece.byteStrides.at(-1) ?? size) === size;
  const loops = dense ? extents.slice(0, -1) : extents;
  const total = loops.reduce((product, extent) => product * extent, 1);
  const bytes = dense ? inner * size : size;
  for (let index = 0; index < total; index++) {
    let rest = index;
    let byteOffset = piece.byteOffset;
    for (let d = loops.length - 1; d >= 0; d--) {
      byteOffset += (rest % loops[d]!) * piece.byteStrides[d]!;
      rest = Math.floor(rest / loops[d]!);
    }
    yield { byteOffset, bytes };
  }
}
