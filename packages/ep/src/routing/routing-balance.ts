// SPDX-License-Identifier: Apache-2.0
// How evenly a routing loads experts and ranks, from the ids alone.

import { requireArray, requireObject } from '@nccl-ext/core/extend';
import { chooseReplica } from '../config/choose-replica.js';
import { type ExpertMap, type ExpertPlacement, expertMapOf } from '../config/expert-map.js';
import { invalid, requireCount, requireList } from '../config/require-values.js';
import { type Spread, spreadOf } from './spread.js';

/** Ids as they are routed: numbers or bigints. */
export type Ids = ArrayLike<number> | ArrayLike<bigint>;

export interface BalanceInput {
  /** `topkIdx[s]`: [B, K] ids of source rank s; -1 is not routed. */
  readonly topkIdx: readonly Ids[];
  /** K. */
  readonly topK: number;
  /** As in the group. The number of ranks is that of `topkIdx`. */
  readonly experts: number | ExpertPlacement;
}

export interface RoutingBalance {
  /** Entries per expert. */
  readonly expert: Spread;
  /** Entries per physical expert, replicas apart, in the order of ranks. */
  readonly physical: Spread;
  /** Entries per rank: rows of packed, before padding. */
  readonly rank: Spread;
  /** Rows per rank: tokens with at least one entry there, as flat and rank-major receive them. */
  readonly rows: Spread;
  /** Entries that are -1. */
  readonly dropped: number;
  readonly entries: number;
}

/**
 * Loads of one step.
 *
 * @throws ERR_INVALID_ARGUMENT for ids out of range.
 * @example
 * ```ts
 * const { rank } = routingBalance({ topkIdx: [[0, 1, 0, 2], [0, 3, -1, -1]], topK: 2, experts: 4 });
 * Array.from(rank.load); // [4, 2]
 * rank.maxOverMean.toFixed(2); // '1.33'
 * ```
 */
export function routingBalance(input: BalanceInput): RoutingBalance {
  requireObject('input', input);
  const { topkIdx, topK, experts } = input;
  requireArray('topkIdx', topkIdx);
  requireCount('topK', topK, 1);
  const map = expertMapOf(experts, topkIdx.length);
  const loads = {
    expert: new Float64Array(map.experts),
    physical: new Float64Array(map.expertOf.length),
    rank: new Float64Array(map.ranks),
    rows: new Float64Array(map.ranks),
  };
  let dropped = 0;
  for (const [source, ids] of topkIdx.entries()) {
    requireList(`topkIdx[${source}]`, ids);
    if (ids.length % topK !== 0)
      throw invalid(`topkIdx[${source}]`, `must have a multiple of topK = ${topK} ids`, ids.length);
    for (let first = 0; first < ids.length; first += topK)
      dropped += countToken(map, loads, source, first / topK, ids, first, topK);
  }
  return {
    expert: spreadOf(loads.expert),
    physical: spreadOf(loads.physical),
    rank: spreadOf(loads.rank),
    rows: spreadOf(loads.rows),
    dropped,
    entries: topkIdx.reduce((sum, ids) => sum + ids.length, 0),
  };
}

/** Returns how many entries of the token are -1. */
function countToken(
  map: ExpertMap,
  loads: Readonly<Record<'expert' | 'physical' | 'rank' | 'rows', Float64Array>>,
  source: number,
  token: number,
  ids: Ids,
  first: number,
  topK: number,
): number {
  const reached = new Set<number>();
  let dropped = 0;
  for (let k = 0; k < topK; k++) {
    const id: unknown = ids[first + k];
    const expert = typeof id === 'bigint' ? Number(id) : (id as number);
    if (expert === -1) {
      dropped++;
      continue;
    }
    const known = Number.isInteger(expert) && expert >= 0 && expert < map.experts;
    if (!known) throw invalid(`topkIdx[${source}][${first + k}]`, `must be -1 to ${map.experts - 1}`, expert);
    const physical = chooseReplica(map, expert, source, token);
    const rank = map.rankOf[physical]!;
    loads.expert[expert]!++;
    loads.physical[physical]!++;
    loads.rank[rank]!++;
    reached.add(rank);
  }
  for (const rank of reached) loads.rows[rank]!++;
  return dropped;
}
