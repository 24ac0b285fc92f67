// SPDX-License-Identifier: Apache-2.0
// Proves that a manifest means something: tensors lie inside their allocations and apart from each other, pieces inside their
// tensors; and gives its pieces with places in bytes.

import { allocationsOf, requireAliases, requireApart } from './check-memory.js';
import { piecesOf, type ResolvedPiece } from './local-pieces.js';
import { localTensors } from './local-tensor.js';
import { errorAt } from './manifest-error.js';
import type { Manifest } from './manifest-schema.js';

interface ResolvedManifest {
  readonly worldSize: number;
  readonly pieces: readonly ResolvedPiece[];
  /** Bytes per allocation, per rank: what is declared, else what the tensors reach. */
  readonly allocations: ReadonlyMap<number, ReadonlyMap<string, number>>;
}

/** @throws ERR_MANIFEST or ERR_OVERLAP naming rank, tensor and field. */
export function resolveManifest(manifest: Manifest): ResolvedManifest {
  const allocations = new Map<number, ReadonlyMap<string, number>>();
  const pieces: ResolvedPiece[] = [];
  let highest = -1;
  for (const [i, entry] of manifest.ranks.entries()) {
    const { rank } = entry;
    const place = { rank, field: `ranks[${i}].rank` };
    if (allocations.has(rank)) throw errorAt('ERR_MANIFEST', place, 'the rank occurs twice');
    if (manifest.worldSize !== undefined && rank >= manifest.worldSize) {
      throw errorAt(
        'ERR_MANIFEST',
        place,
        `worldSize is ${manifest.worldSize}, so ranks end at ${manifest.worldSize - 1}`,
      );
    }
    const tensors = localTensors(entry, `ranks[${i}]`);
    allocations.set(rank, allocationsOf(entry, tensors, `ranks[${i}]`));
    requireApart(tensors);
    requireAliases(tensors);
    for (const tensor of tensors) pieces.push(...piecesOf(tensor));
    highest = Math.max(highest, rank);
  }
  return { worldSize: manifest.worldSize ?? highest + 1, pieces, allocations };
}
