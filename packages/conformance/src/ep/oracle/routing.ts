// SPDX-License-Identifier: Apache-2.0
// Follows every (token, top-k position) to the physical expert that it must reach, by reading the rules one entry at a time.

/** What a rank routes: ids and weights [B, K]. */
export interface Routing {
  readonly tokens: number;
  readonly ids: Int32Array;
  readonly weights: Float32Array;
}

/** Where experts are, and who takes part. */
export interface Placement {
  /** `experts[r]`: the experts of rank r in local order. */
  readonly experts: readonly (readonly number[])[];
  readonly localFirst: boolean;
  /** Ranks that are members. */
  readonly members: readonly number[];
}

/** One top-k entry of one token, with the place that it reaches. */
export interface Entry {
  readonly source: number;
  readonly token: number;
  readonly k: number;
  /** As routed. */
  readonly id: number;
  readonly rank: number;
  /** Position of the expert on its rank. */
  readonly local: number;
  /** As passed to dispatch. */
  readonly weight: number;
}

/** Every live entry of every member, by (source, token, k). */
export function entriesOf(placement: Placement, topK: number, routings: readonly Routing[]): Entry[] {
  const entries: Entry[] = [];
  for (const source of placement.members) {
    const { tokens, ids, weights } = routings[source]!;
    for (let token = 0; token < tokens; token++) {
      for (let k = 0; k < topK; k++) {
        const id = ids[token * topK + k]!;
        const place = id < 0 ? undefined : placeOf(placement, source, token, id);
        if (place === undefined) continue;
        entries.push({ source, token, k, id, ...place, weight: weights[token * topK + k]! });
      }
    }
  }
  return entries;
}

interface Place {
  readonly rank: number;
  readonly local: number;
}

/** The replica of expert `id` that the token goes to, or undefined when no member has one. */
function placeOf(
  { experts, localFirst, members }: Placement,
  source: number,
  token: number,
  id: number,
): Place | undefined {
  const replicas: Place[] = [];
  for (const rank of members)
    for (const [local, expert] of experts[rank]!.entries()) if (expert === id) replicas.push({ rank, local });
  const here = replicas.find(({ rank }) => rank === source);
  if (localFirst && here !== undefined) return here;
  return replicas[(source + token) % replicas.length];
}

/**
 * w / (sum of the token's live w, from the first in top-k order, each step rounded to f32), in f32; entries that are not live get 0, as do
 * the weights of a token without any.
 */
export function renormalised(entries: readonly Entry[]): Entry[] {
  return entries.map((entry) => {
    const own = entries.filter(({ source, token }) => source === entry.source && token === entry.token);
    let sum = own[0]!.weight;
    for (const { weight } of own.slice(1)) sum = Math.fround(sum + weight);
    return { ...entry, weight: Math.fround(entry.weight / sum) };
  });
}
