// SPDX-License-Identifier: Apache-2.0
// Writes what rules say of one side as a manifest, for programs that plan or check without the rules.

import { dtypeBytes } from '@nccl-ext/core';
import type { RefitTensors } from '../rules/refit-tensors.js';
import type { SideStorage, StoragePiece } from '../rules/side-storages.js';
import type { Manifest, ManifestPiece, ManifestTensor } from './manifest-schema.js';
import { boxesOfPart } from './require-covered.js';

/**
 * The manifest of one side of a refit; its ranks are numbered from 0. Every storage is a tensor in an allocation of its own.
 *
 * @example
 * ```ts
 * const document = manifestOf(refitTensors({ model, rules, from, to }), 'destination');
 * await writeFile('engine.json', JSON.stringify(document));
 * ```
 */
export function manifestOf(refit: RefitTensors, role: 'source' | 'destination'): Manifest {
  const { parallelism, firstRank } = refit[role];
  const storages = role === 'source' ? refit.sourceStorages : refit.destinationStorages;
  return {
    format: 'nccl-ext.m2n.manifest',
    version: 1,
    worldSize: parallelism.ranks,
    globals: Object.fromEntries(refit.tensors.map((tensor) => [tensor.name, tensor[role][0]!.pattern.shape])),
    ranks: Array.from({ length: parallelism.ranks }, (_, rank) => ({
      rank,
      tensors: storages(firstRank + rank).map(tensorOf),
    })),
  };
}

function tensorOf({ storage, dtype, shape, pieces }: SideStorage): ManifestTensor {
  return {
    name: storage,
    dtype,
    shape,
    pieces: pieces.flatMap((piece) => piecesOf(piece, shape, dtypeBytes(dtype))),
  };
}

function piecesOf(
  { name, byteOffset, part }: StoragePiece,
  shape: readonly number[],
  elementBytes: number,
): readonly ManifestPiece[] {
  const base = unravel(byteOffset / elementBytes, shape);
  // The storage of stacked experts has one dimension in front that the parameter lacks.
  const extra = shape.length - part.dims.length;
  return boxesOfPart(part).map(({ box, local }) => ({
    source: name,
    global: box,
    local: {
      start: base.map((start, d) => start + (local[d - extra] ?? 0)),
      size: base.map((_, d) => box.size[d - extra] ?? 1),
    },
  }));
}

/** The index of an element of a row-major tensor by its position. */
function unravel(position: number, shape: readonly number[]): readonly number[] {
  const index = new Array<number>(shape.length);
  let rest = position;
  for (let d = shape.length - 1; d >= 0; d--) {
    index[d] = rest % shape[d]!;
    rest = Math.floor(rest / shape[d]!);
  }
  return index;
}
