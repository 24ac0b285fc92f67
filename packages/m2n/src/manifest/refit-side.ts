// SPDX-License-Identifier: Apache-2.0
// Makes one side of a transfer from rules, so that it can be joined with a manifest on the other side.

import type { PlacedCopy } from '../rules/place-parameters.js';
import type { RefitTensors } from '../rules/refit-tensors.js';
import { storagesOf } from '../rules/side-storages.js';
import type { SideTensor, TransferSide } from './join-sides.js';
import { boxesOfPart, requireBoxesCovered, type WantedBox } from './require-covered.js';

/** The source or the destination of a refit. */
export function refitSide(refit: RefitTensors, role: 'source' | 'destination'): TransferSide {
  const { parallelism, firstRank } = refit[role];
  const placed = new Map<string, readonly PlacedCopy[]>(
    refit.tensors.map((tensor) => [tensor.name, tensor[role]]),
  );
  const tensors = new Map<string, SideTensor>();
  for (const [name, copies] of placed) {
    const { dtype, shape } = copies[0]!.pattern;
    tensors.set(name, { dtype, shape, reach: shape, copies: () => copies, place: undefined });
  }
  return {
    worldSize: firstRank + parallelism.ranks,
    tensors,
    requireCovered: (name, source) => requireBoxesCovered(name, wantedBoxes(placed.get(name)!), source),
    storages: (rank, joined) =>
      storagesOf(
        rank,
        joined.map(({ name }) => ({ name, copies: placed.get(name)! })),
      ),
  };
}

function* wantedBoxes(copies: readonly PlacedCopy[]): Generator<WantedBox> {
  for (const { pattern, storage } of copies) {
    for (const part of pattern.parts) {
      const place = { rank: part.ranks[0]!, tensor: storage, field: 'rules' };
      for (const { box } of boxesOfPart(part)) yield { box, place };
    }
  }
}
