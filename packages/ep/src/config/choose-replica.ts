// SPDX-License-Identifier: Apache-2.0
// Which replica of an expert a token goes to: the rule that devices follow, for statistics and plans.

import type { ExpertMap } from './expert-map.js';

/**
 * The physical expert that token number `token` of rank `source` goes to, or -1 when no replica is on a member. `active[r]` is 1 for
 * members; all ranks are when it is left away.
 */
export function chooseReplica(
  map: ExpertMap,
  expert: number,
  source: number,
  token: number,
  active?: ArrayLike<number>,
): number {
  const all = map.replicas[expert] ?? [];
  const live = active === undefined ? all : all.filter((physical) => active[map.rankOf[physical]!] === 1);
  if (live.length === 0) return -1;
  if (map.replicaRule === 'local-first') {
    const local = live.find((physical) => map.rankOf[physical] === source);
    if (local !== undefined) return local;
  }
  return live[(source + token) % live.length]!;
}
