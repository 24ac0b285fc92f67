// SPDX-License-Identifier: Apache-2.0
// Makes one side of a transfer from a manifest.

import { dtypeBytes } from '@nccl-ext/core';
import { patternOfBoxes } from '../plan/pattern-of-boxes.js';
import type { SideCopy } from '../plan/plan-request.js';
import type { SidePattern } from '../plan/side-pattern.js';
import type { SideStorage, StoragePiece } from '../rules/side-storages.js';
import type { JoinedTensor, SideTensor, TransferSide } from './join-sides.js';
import type { ResolvedPiece } from './local-pieces.js';
import { errorAt } from './manifest-error.js';
import type { Manifest } from './manifest-schema.js';
import { requireBoxesCovered } from './require-covered.js';
import { resolveManifest } from './resolve-manifest.js';

export interface ManifestSideOptions {
  /** Added to every rank of the manifest: where its ranks begin in the world of the transfer. Default 0. */
  readonly firstRank?: number;
}

/**
 * The side that a manifest describes. Storages are its allocations. At the destination an alias adds nothing: its memory is
 * written once, as the tensor that it is an alias of; at the source it is another name for what the memory holds.
 *
 * @throws ERR_MANIFEST or ERR_OVERLAP naming rank, tensor and field.
 */
export function manifestSide(
  manifest: Manifest,
  role: 'source' | 'destination',
  { firstRank = 0 }: ManifestSideOptions = {},
): TransferSide {
  const { worldSize, pieces, allocations } = resolveManifest(manifest);
  const used = role === 'source' ? pieces : pieces.filter(({ isAlias }) => !isAlias);
  const bySource = groupBy(used, ({ source }) => source);
  const globals = new Map(Object.entries(manifest.globals ?? {}));
  const patterns = new Map<string, SidePattern>();
  const tensors = new Map<string, SideTensor>();
  for (const [name, list] of bySource)
    tensors.set(name, sideTensor(list, globals.get(name), firstRank, patterns));
  return {
    worldSize: firstRank + worldSize,
    tensors,
    requireCovered: (name, source) => {
      const wanted = (bySource.get(name) ?? []).map(({ global, place }) => ({ box: global, place }));
      requireBoxesCovered(name, wanted, source);
    },
    storages: (rank, joined) => storagesOn(rank, joined, allocations.get(rank - firstRank) ?? new Map()),
  };
}

function groupBy<T>(items: Iterable<T>, keyOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

function sideTensor(
  pieces: readonly ResolvedPiece[],
  declared: readonly number[] | undefined,
  firstRank: number,
  patterns: Map<string, SidePattern>,
): SideTensor {
  const first = pieces[0]!;
  const { dtype, source } = first;
  const reach = first.global.size.map(() => 0);
  for (const piece of pieces) {
    requireAgreement(piece, first, declared);
    for (let d = 0; d < reach.length; d++) {
      reach[d] = Math.max(reach[d]!, piece.global.start[d]! + piece.global.size[d]!);
      if (declared !== undefined && reach[d]! > declared[d]!) {
        const problem = `reaches to ${reach[d]} in dimension ${d} of ${source}, whose declared extents are [${declared.join(', ')}]`;
        throw errorAt('ERR_MANIFEST', { ...piece.place, field: `${piece.place.field}.global` }, problem);
      }
    }
  }
  const copies = (shape: readonly number[]): readonly SideCopy[] =>
    Array.from(
      groupBy(pieces, ({ allocation }) => allocation),
      ([storage, list]) => {
        const boxes = list.map(({ rank, global, byteOffset, byteStrides }) => ({
          rank: rank + firstRank,
          ...global,
          byteOffset,
          byteStrides,
        }));
        // Tensors that lie the same way must share their pattern: the planner works once per pattern.
        const key = JSON.stringify([dtype, shape, boxes]);
        let pattern = patterns.get(key);
        if (pattern === undefined) {
          pattern = patternOfBoxes({ dtype, shape, boxes });
          patterns.set(key, pattern);
        }
        return { pattern, storage };
      },
    );
  return { dtype, shape: declared, reach, copies, place: first.place };
}

function requireAgreement(
  piece: ResolvedPiece,
  first: ResolvedPiece,
  declared: readonly number[] | undefined,
): void {
  const { global, dtype, source, place } = piece;
  if (dtype !== first.dtype) {
    const problem = `has ${source} as ${dtype}, but rank ${first.place.rank} has it as ${first.dtype}`;
    throw errorAt('ERR_MANIFEST', place, problem);
  }
  const dimensions = declared?.length ?? first.global.size.length;
  if (global.size.length !== dimensions) {
    const problem = `has ${global.size.length} dimensions of ${source}, which has ${dimensions}`;
    throw errorAt('ERR_MANIFEST', { ...place, field: `${place.field}.global` }, problem);
  }
}

function storagesOn(
  rank: number,
  tensors: readonly JoinedTensor[],
  allocations: ReadonlyMap<string, number>,
): readonly SideStorage[] {
  const pieces = new Map<string, StoragePiece[]>(Array.from(allocations.keys(), (name) => [name, []]));
  for (const [tensor, { name, copies }] of tensors.entries()) {
    for (const { pattern, storage } of copies) {
      for (const part of pattern.parts) {
        if (!part.ranks.includes(rank)) continue;
        const bytes = part.dims.reduce((product, { extent }) => product * extent, dtypeBytes(pattern.dtype));
        pieces.get(storage)!.push({ tensor, name, byteOffset: part.byteOffset, bytes, part });
      }
    }
  }
  return Array.from(allocations, ([storage, bytes]): SideStorage => {
    const list = pieces.get(storage)!.sort((a, b) => a.byteOffset - b.byteOffset);
    return { storage, dtype: 'u8', shape: [bytes], bytes, pieces: list };
  });
}
