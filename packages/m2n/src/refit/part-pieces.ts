// SPDX-License-Identifier: Apache-2.0
// Walks over a part of a stored tensor in pieces of bounded size: which elements, and where their bytes lie.

import { type DimRuns, type DType, dtypeBytes } from '@nccl-ext/core';
import type { Part } from '../plan/side-pattern.js';
import type { ByteRange } from './host-access.js';
import { subRuns } from './sub-runs.js';

/** At most this many bytes of a storage are in flight at once, gaps between elements included. */
const pieceBytes: number = 32 * 1024 * 1024;

/** A range of some dimensions of a part. */
export interface PartPiece {
  readonly dims: readonly DimRuns[];
  /** Elements of the piece. */
  readonly elements: number;
  /** Byte of the storage at which its first element lies. */
  readonly byteOffset: number;
  readonly byteStrides: readonly number[];
}

/** The pieces of `part`, each of at most `mostBytes` or of one element, in the order of the memory; an empty part has none. */
export function partPieces(part: Part, dtype: DType, mostBytes: number = pieceBytes): Generator<PartPiece> {
  const { dims, byteOffset, byteStrides } = part;
  // A cut of any other than the outermost dimension would leave pieces that reach over the whole storage.
  const outermostFirst = [...dims.keys()].sort((a, b) => byteStrides[b]! - byteStrides[a]!);
  return cut({ dims, elements: elementsOf(dims), byteOffset, byteStrides }, dtype, mostBytes, outermostFirst);
}

/** `order` has the dimensions that are not cut yet. */
function* cut(
  piece: PartPiece,
  dtype: DType,
  mostBytes: number,
  order: readonly number[],
): Generator<PartPiece> {
  if (piece.elements === 0) return;
  const [d, ...inner] = order;
  const { bytes } = pieceRange(piece, dtype, 0);
  if (d === undefined || bytes <= mostBytes) {
    yield piece;
    return;
  }
  const { extent } = piece.dims[d]!;
  const stride = piece.byteStrides[d]!;
  const oneIndex = bytes - (extent - 1) * stride;
  const step = oneIndex > mostBytes ? 1 : 1 + Math.floor((mostBytes - oneIndex) / stride);
  for (let from = 0; from < extent; from += step) {
    const range = subRuns(piece.dims[d]!, from, Math.min(extent, from + step));
    const dims = piece.dims.with(d, range);
    const byteOffset = piece.byteOffset + from * stride;
    yield* cut({ ...piece, dims, elements: elementsOf(dims), byteOffset }, dtype, mostBytes, inner);
  }
}

function elementsOf(dims: readonly DimRuns[]): number {
  return dims.reduce((product, { extent }) => product * extent, 1);
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
