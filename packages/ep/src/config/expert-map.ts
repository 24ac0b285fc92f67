// SPDX-License-Identifier: Apache-2.0
// Which rank has which experts: evenly by count, or by a map with uneven ranks and redundant replicas.

import { NcclExtError } from '@nccl-ext/core';
import type { EpReplicaRule } from '@nccl-ext/core/contract';
import { requireArray, requireObject } from '@nccl-ext/core/extend';
import { chunkExperts } from './chunk-experts.js';
import { requireCount } from './require-values.js';

/** No model and no machine comes near; a mistaken size fails here and not when memory runs out. */
export const mostExperts: number = 2 ** 16;
export const mostRanks: number = 2 ** 16;

/** Experts placed by hand, as `placeExperts` makes it from loads. */
export interface ExpertPlacement {
  /** Experts that ids name: 0 to count - 1. */
  readonly count: number;
  /** `placement[r]`: the experts of rank r in local order. Every expert is somewhere; one that is at several places has replicas. */
  readonly placement: readonly (readonly number[])[];
  /**
   * Which replica a token goes to. `by-token` (default): number (source rank + token) modulo replicas. `local-first`: one on the source
   * rank where there is one, else as `by-token`. All of them in order of rank and local position.
   */
  readonly replicaRule?: EpReplicaRule | undefined;
}

/** Where experts are. A physical expert is one replica; physical experts count through the ranks. */
export interface ExpertMap {
  readonly experts: number;
  readonly ranks: number;
  readonly replicaRule: EpReplicaRule;
  /** `placement[r]`: the experts of rank r in local order. */
  readonly placement: readonly (readonly number[])[];
  /** First physical expert of each rank, R + 1 entries. */
  readonly firstPhysical: Int32Array;
  /** The expert that each physical expert is a replica of. */
  readonly expertOf: Int32Array;
  /** The rank of each physical expert. */
  readonly rankOf: Int32Array;
  /** Physical experts of each expert, ascending. */
  readonly replicas: readonly (readonly number[])[];
  /** L of the rank with the most. */
  readonly mostLocal: number;
}

/**
 * The map of `experts` over `ranks` ranks. A count is cut into contiguous, equal parts; the first `count mod ranks` ranks have one more.
 *
 * @throws ERR_INVALID_ARGUMENT when a placement does not fit the ranks or leaves an expert without a place.
 */
export function expertMapOf(experts: number | ExpertPlacement, ranks: number): ExpertMap {
  requireCount('ranks', ranks, 1, mostRanks);
  requireExperts(experts);
  const count = typeof experts === 'number' ? experts : experts.count;
  const placement = typeof experts === 'number' ? chunkExperts(experts, ranks) : experts.placement;
  if (placement.length !== ranks) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `experts.placement has ${placement.length} ranks; the communicator has ${ranks}.`,
      { field: 'experts.placement', expected: ranks, seen: placement.length },
    );
  }
  const firstPhysical = new Int32Array(ranks + 1);
  for (const [rank, local] of placement.entries())
    firstPhysical[rank + 1] = firstPhysical[rank]! + local.length;
  const expertOf = Int32Array.from(placement.flat());
  const rankOf = Int32Array.from(placement.flatMap((local, rank) => local.map(() => rank)));
  return {
    experts: count,
    ranks,
    replicaRule: typeof experts === 'number' ? 'by-token' : (experts.replicaRule ?? 'by-token'),
    placement,
    firstPhysical,
    expertOf,
    rankOf,
    replicas: replicasOf(count, placement),
    mostLocal: placement.reduce((most, local) => Math.max(most, local.length), 0),
  };
}

function requireExperts(experts: number | ExpertPlacement): void {
  if (typeof experts === 'number') {
    requireCount('experts', experts, 1, mostExperts);
    return;
  }
  requireObject('experts', experts);
  requireCount('experts.count', experts.count, 1, mostExperts);
  requireArray('experts.placement', experts.placement);
  for (const [rank, local] of experts.placement.entries()) requireArray(`experts.placement[${rank}]`, local);
}

function replicasOf(count: number, placement: readonly (readonly number[])[]): number[][] {
  const replicas: number[][] = Array.from({ length: count }, () => []);
  let physical = 0;
  for (const [rank, local] of placement.entries()) {
    for (const [position, expert] of local.entries()) {
      const own = replicas[expert];
      if (own === undefined) {
        throw new NcclExtError(
          'ERR_INVALID_ARGUMENT',
          `experts.placement[${rank}][${position}] is ${expert}; experts are 0 to ${count - 1}.`,
          { field: `experts.placement[${rank}][${position}]`, expected: `0 to ${count - 1}`, seen: expert },
        );
      }
      own.push(physical++);
    }
  }
  const missing = replicas.findIndex((own) => own.length === 0);
  if (missing >= 0) {
    throw new NcclExtError('ERR_INVALID_ARGUMENT', `experts.placement has expert ${missing} nowhere.`, {
      field: 'experts.placement',
      help: `Put every expert from 0 to ${count - 1} on at least one rank.`,
    });
  }
  return replicas;
}
