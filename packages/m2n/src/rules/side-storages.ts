// SPDX-License-Identifier: Apache-2.0
// Lists what one rank must allocate for its side of a refit, and which part of which tensor lies where in it.

import { type DType, dtypeBytes } from '@nccl-ext/core';
import type { Part, SidePattern } from '../plan/side-pattern.js';
import type { PlacedCopy } from './place-parameters.js';
import { rulesError } from './rules-error.js';

/** A part of a tensor in a storage, from `byteOffset` on with the strides of `part`. */
export interface StoragePiece {
  /** Index of the tensor in the request. */
  readonly tensor: number;
  /** The parameter. */
  readonly name: string;
  readonly byteOffset: number;
  readonly bytes: number;
  /** What it is of the tensor: runs per dimension. */
  readonly part: Part;
}

/** One tensor that a rank keeps. */
export interface SideStorage {
  readonly storage: string;
  readonly dtype: DType;
  /** Local extents; a fused storage has the rows of all its pieces, stacked experts are its first dimension. */
  readonly shape: readonly number[];
  readonly bytes: number;
  /** By byte offset. Storages of rules are filled by them without gaps, those of manifests need not be. */
  readonly pieces: readonly StoragePiece[];
}

/** A tensor of the request and its copies on this side. */
export interface PlacedTensor {
  readonly name: string;
  readonly copies: readonly PlacedCopy[];
}

interface OpenStorage {
  readonly copy: PlacedCopy;
  readonly pieces: StoragePiece[];
  /** Positions of stacked experts; empty for other storages. */
  readonly experts: Set<number>;
}

/** @throws ERR_RULES when pieces of a storage overlap or leave gaps, as with shapes that differ between layers. */
export function storagesOf(rank: number, tensors: Iterable<PlacedTensor>): readonly SideStorage[] {
  const parts = new Map<SidePattern, Part | undefined>();
  const partOn = (pattern: SidePattern): Part | undefined => {
    if (!parts.has(pattern))
      parts.set(
        pattern,
        pattern.parts.find(({ ranks }) => ranks.includes(rank)),
      );
    return parts.get(pattern);
  };
  const open = new Map<string, OpenStorage>();
  let index = 0;
  for (const { name, copies } of tensors) {
    for (const copy of copies) {
      const part = partOn(copy.pattern);
      if (part === undefined) continue;
      let storage = open.get(copy.storage);
      if (storage === undefined) {
        storage = { copy, pieces: [], experts: new Set() };
        open.set(copy.storage, storage);
      }
      const bytes = part.dims.reduce(
        (product, { extent }) => product * extent,
        dtypeBytes(copy.pattern.dtype),
      );
      storage.pieces.push({ tensor: index, name, byteOffset: part.byteOffset, bytes, part });
      if (copy.stackIndex !== undefined) storage.experts.add(copy.stackIndex);
    }
    index++;
  }
  return Array.from(open, ([name, storage]) => finish(name, storage));
}

function finish(name: string, { copy, pieces, experts }: OpenStorage): SideStorage {
  pieces.sort((a, b) => a.byteOffset - b.byteOffset);
  let bytes = 0;
  for (const piece of pieces) {
    if (piece.byteOffset !== bytes) {
      const problem = `has ${JSON.stringify(piece.name)} at byte ${piece.byteOffset}, but the pieces before end at ${bytes}`;
      throw rulesError(`storage ${JSON.stringify(name)} ${problem}`, {
        help: 'A view must join each storage from the same parameters with the same shapes in every layer.',
        field: piece.name,
      });
    }
    bytes += piece.bytes;
  }
  const [rows, ...rest] = pieces[0]!.part.dims.map(({ extent }) => extent);
  const dtype = copy.pattern.dtype;
  // All pieces agree in the dimensions behind the first one, so the bytes tell the rows.
  const total =
    rows === undefined ? 0 : bytes / rest.reduce((product, extent) => product * extent, dtypeBytes(dtype));
  const leading = rows === undefined ? [] : experts.size > 0 ? [experts.size, total / experts.size] : [total];
  return { storage: name, dtype, shape: [...leading, ...rest], bytes, pieces };
}
