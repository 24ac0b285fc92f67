// SPDX-License-Identifier: Apache-2.0
// Where experts and their replicas go so that ranks are loaded evenly, from counts of earlier steps.

import type { EpReplicaRule } from '@nccl-ext/core/contract';
import { requireObject } from '@nccl-ext/core/extend';
import { type ExpertPlacement, mostExperts, mostRanks } from '../config/expert-map.js';
import { invalid, requireCount, requireList } from '../config/require-values.js';

export interface PlaceInput {
  /** Entries per expert, as `routingBalance(...).expert.load` or any other measure of its work. */
  readonly load: ArrayLike<number>;
  readonly ranks: number;
  /** Physical experts per rank; ranks x slots is at least the number of experts, what is over becomes replicas. */
  readonly slotsPerRank: number;
  readonly replicaRule?: EpReplicaRule | undefined;
}

/** A placement for `createEpGroup`, and what it promises. */
export interface PlacedExperts {
  readonly experts: ExpertPlacement;
  /** Load per rank if replicas of an expert share its load evenly. */
  readonly rankLoad: Float64Array;
}

/**
 * Greedy, as DeepSeek's EPLB: each spare slot becomes a replica of the expert with the most load per replica that is not on every rank
 * yet; then replicas, heaviest first, go to the least loaded rank with a free slot, one without that expert where there is one. Ties go to lower numbers: the same
 * counts give the same placement everywhere.
 *
 * @throws ERR_INVALID_ARGUMENT when there are fewer slots than experts, or a load is negative or not finite.
 * @example
 * ```ts
 * const { experts } = placeExperts({ load: [90, 10, 10, 10], ranks: 2, slotsPerRank: 3 });
 * experts.placement[1]; // [0, 1, 3]
 * ```
 */
export function placeExperts(input: PlaceInput): PlacedExperts {
  requireObject('input', input);
  const { load, ranks, slotsPerRank, replicaRule } = input;
  requireList('load', load);
  requireCount('ranks', ranks, 1, mostRanks);
  requireCount('slotsPerRank', slotsPerRank, 1, Math.floor(mostExperts / ranks));
  const count = load.length;
  requireCount('load.length', count, 1, ranks * slotsPerRank);
  for (let expert = 0; expert < count; expert++) {
    const value = load[expert]!;
    if (!Number.isFinite(value) || value < 0)
      throw invalid(`load[${expert}]`, 'must be a finite number, not negative', value);
  }
  const replicas = replicaCounts(load, ranks, ranks * slotsPerRank);
  const shares = Array.from(replicas, (n, expert) => ({ expert, share: load[expert]! / n, n }));
  const heaviestFirst = shares
    .flatMap(({ expert, share, n }) => Array.from({ length: n }, () => ({ expert, share })))
    .sort((a, b) => b.share - a.share || a.expert - b.expert);
  const placement: number[][] = Array.from({ length: ranks }, () => []);
  const rankLoad = new Float64Array(ranks);
  for (const { expert, share } of heaviestFirst) {
    const rank = lightest(placement, rankLoad, slotsPerRank, expert);
    placement[rank]!.push(expert);
    rankLoad[rank]! += share;
  }
  for (const local of placement) local.sort((a, b) => a - b);
  return {
    experts: replicaRule === undefined ? { count, placement } : { count, placement, replicaRule },
    rankLoad,
  };
}

function replicaCounts(load: ArrayLike<number>, ranks: number, slots: number): Int32Array {
  const replicas = new Int32Array(load.length).fill(1);
  for (let spare = slots - load.length; spare > 0; spare--) {
    const everywhere = replicas.every((n) => n >= ranks);
    let heaviest = -1;
    for (let expert = 0; expert < load.length; expert++) {
      if (replicas[expert]! >= ranks && !everywhere) continue;
      if (heaviest < 0 || load[expert]! / replicas[expert]! > load[heaviest]! / replicas[heaviest]!)
        heaviest = expert;
    }
    replicas[heaviest]!++;
  }
  return replicas;
}

function lightest(
  placement: readonly (readonly number[])[],
  rankLoad: Float64Array,
  slotsPerRank: number,
  expert: number,
): number {
  const free = [...placement.keys()].filter((rank) => placement[rank]!.length < slotsPerRank);
  const without = free.filter((rank) => !placement[rank]!.includes(expert));
  const candidates = without.length > 0 ? without : free;
  return candidates.reduce((best, rank) => (rankLoad[rank]! < rankLoad[best]! ? rank : best));
}
