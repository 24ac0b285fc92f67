// SPDX-License-Identifier: Apache-2.0
// Gives the pieces of a local tensor their places in bytes, and proves that they lie inside it and apart.

import type { DType } from '@nccl-ext/core';
import { describeBox, isEmpty, meet } from './boxes.js';
import type { LocalTensor } from './local-tensor.js';
import { errorAt, type ManifestPlace } from './manifest-error.js';
import type { ManifestBox } from './manifest-schema.js';

/** A piece with its place in an allocation. */
export interface ResolvedPiece {
  readonly rank: number;
  readonly source: string;
  readonly dtype: DType;
  readonly global: ManifestBox;
  readonly allocation: string;
  /** From the first byte of the allocation. */
  readonly byteOffset: number;
  /** Per dimension of the global tensor. */
  readonly byteStrides: readonly number[];
  /** The tensor is declared as alias of another one. */
  readonly isAlias: boolean;
  readonly place: ManifestPlace;
}

/** @throws ERR_MANIFEST for boxes that do not fit, ERR_OVERLAP for local boxes that meet. */
export function piecesOf(local: LocalTensor): readonly ResolvedPiece[] {
  const { tensor, dtype, allocation, offset, shape, strides, place } = local;
  const pieces = tensor.pieces ?? [];
  if (tensor.pieces === undefined && tensor.alias === undefined) {
    throw errorAt('ERR_MANIFEST', { ...place, field: `${place.field}.pieces` }, 'pieces are missing');
  }
  const boxes = pieces.map((piece) => piece.local ?? { start: shape.map(() => 0), size: shape });
  for (const [k, box] of boxes.entries())
    requireInside(box, shape, { ...place, field: `${place.field}.pieces[${k}].local` });
  requireDisjoint(boxes, local);
  return pieces.flatMap((piece, k) => {
    const at = { ...place, field: `${place.field}.pieces[${k}]` };
    const box = boxes[k]!;
    const byteStrides = matchStrides(piece.global, box, strides, at);
    if (isEmpty(piece.global)) return [];
    const byteOffset = box.start.reduce((sum, start, d) => sum + start * strides[d]!, offset);
    const { source, global } = piece;
    return {
      rank: place.rank,
      source,
      dtype,
      global,
      allocation,
      byteOffset,
      byteStrides,
      isAlias: tensor.alias !== undefined,
      place: at,
    };
  });
}

function requireInside(box: ManifestBox, shape: readonly number[], place: ManifestPlace): void {
  const { start, size } = box;
  const fits =
    start.length === shape.length &&
    size.length === shape.length &&
    shape.every((extent, d) => start[d]! + size[d]! <= extent);
  if (fits) return;
  const problem = `start [${start.join(', ')}] and size [${size.join(', ')}] do not lie in the shape [${shape.join(', ')}]`;
  throw errorAt('ERR_MANIFEST', place, problem);
}

function requireDisjoint(boxes: readonly ManifestBox[], { place }: LocalTensor): void {
  const order = boxes
    .map((box, k) => ({ box, k }))
    .sort((a, b) => (a.box.start[0] ?? 0) - (b.box.start[0] ?? 0));
  for (const [i, { box, k }] of order.entries()) {
    for (const other of order.slice(i + 1)) {
      if (box.start.length > 0 && other.box.start[0]! >= box.start[0]! + box.size[0]!) break;
      if (!meet(box, other.box)) continue;
      const field = `${place.field}.pieces[${other.k}].local`;
      const problem = `${describeBox(other.box)} overlaps ${describeBox(box)} of pieces[${k}]`;
      throw errorAt('ERR_OVERLAP', { ...place, field }, problem);
    }
  }
}

/**
 * The strides of the dimensions of the global box. Local dimensions that it lacks have size 1; which of several of size 1
 * stands for which does not matter, since nobody steps along them.
 */
function matchStrides(
  global: ManifestBox,
  local: ManifestBox,
  strides: readonly number[],
  place: ManifestPlace,
): readonly number[] {
  const found: number[] = [];
  let wanted = global.size.length - 1;
  for (let d = local.size.length - 1; d >= 0; d--) {
    if (local.size[d] === global.size[wanted]) {
      found.unshift(strides[d]!);
      wanted--;
    } else if (local.size[d] !== 1) break;
  }
  const extra = local.size.length - global.size.length;
  const spare =
    local.size.filter((extent) => extent === 1).length - global.size.filter((extent) => extent === 1).length;
  if (wanted === -1 && extra === spare && global.start.length === global.size.length) return found;
  const problem = `sizes of global [${global.size.join(', ')}] and local [${local.size.join(', ')}] differ`;
  throw errorAt('ERR_MANIFEST', place, problem);
}
