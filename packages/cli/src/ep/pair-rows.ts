// SPDX-License-Identifier: Apache-2.0
// Counts what travels: rows between each pair of ranks, a token once per rank that it reaches.

import { chooseReplica, type ExpertMap, type Ids } from '@nccl-ext/ep';

export interface PairRows {
  /** `[source * ranks + destination]`: tokens of the source with an expert on the destination, itself included. */
  readonly rows: Float64Array;
  /** `[rank]`: tokens of the rank that go anywhere. */
  readonly live: Float64Array;
}

/** `topkIdx[s]`: ids [B, K] of source rank s, which are in range. */
export function pairRows(map: ExpertMap, topK: number, topkIdx: readonly Ids[]): PairRows {
  const rows = new Float64Array(map.ranks * map.ranks);
  const live = new Float64Array(map.ranks);
  const last = new Int32Array(map.ranks).fill(-1);
  for (const [source, ids] of topkIdx.entries()) {
    last.fill(-1);
    for (let at = 0; at < ids.length; at++) {
      const expert = Number(ids[at]);
      if (expert < 0) continue;
      const token = Math.floor(at / topK);
      const rank = map.rankOf[chooseReplica(map, expert, source, token)]!;
      if (last[rank] === token) continue;
      if (!last.includes(token)) live[source]!++;
      last[rank] = token;
      rows[source * map.ranks + rank]!++;
    }
  }
  return { rows, live };
}
