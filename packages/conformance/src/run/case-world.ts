// SPDX-License-Identifier: Apache-2.0
// A world as cases see it, whether one process drives all of its ranks or each process drives one.

import type { Communicator, World } from '@nccl-ext/core';

/** As `World`; `ranks[r]` is rank r only where {@link isWhole}. */
export interface CaseWorld
  extends Pick<World, 'size' | 'topology' | 'backend' | 'faults' | 'run' | 'dispose'> {
  /** Those that this process drives, ascending; none where it only looks on. */
  readonly ranks: readonly Communicator[];
}

/** Whether this process drives every rank. */
export function isWhole({ ranks, size }: CaseWorld): boolean {
  return ranks.length === size;
}

/** Places in `world.ranks` of those of `ranks` that this process drives. */
export function ownPlaces(world: CaseWorld, ranks: readonly number[]): readonly number[] {
  return world.ranks.flatMap(({ rank }, place) => (ranks.includes(rank) ? [place] : []));
}
