// SPDX-License-Identifier: Apache-2.0
// Made-up routings: reproducible from a seed, even or with favourites.

/** How experts are drawn. */
export type RoutingKind = 'uniform' | 'zipf';

export interface SyntheticRouting {
  readonly kind: RoutingKind;
  readonly ranks: number;
  /** B of every rank. */
  readonly tokens: number;
  readonly topK: number;
  readonly experts: number;
  readonly seed: number;
  /** Zipf: the i-th most popular expert is drawn in proportion to 1 / i^skew. */
  readonly skew: number;
}

/** Ids [B, K] of each rank; the experts of a token are distinct. */
export function syntheticRouting(routing: SyntheticRouting): Int32Array[] {
  return [...routingByRank(routing)];
}

/** The same rank by rank, for who must look up in between: many tokens take minutes. */
export function* routingByRank(routing: SyntheticRouting): Generator<Int32Array> {
  const { kind, ranks, tokens, topK, experts, seed, skew } = routing;
  const random = randomFrom(seed);
  // Favourites lie anywhere among the experts, so that no rank has them all.
  const order = shuffled(experts, random);
  const weights = new Float64Array(experts);
  for (const [place, expert] of order.entries())
    weights[expert] = kind === 'uniform' ? 1 : (place + 1) ** -skew;
  for (let rank = 0; rank < ranks; rank++) {
    const ids = new Int32Array(tokens * topK);
    for (let token = 0; token < tokens; token++) drawToken(ids, token * topK, topK, weights, random);
    yield ids;
  }
}

/** Weighted sampling without replacement: the largest of log(u) / w (Efraimidis and Spirakis, 2006). */
function drawToken(
  ids: Int32Array,
  first: number,
  topK: number,
  weights: Float64Array,
  random: () => number,
): void {
  const keys = new Float64Array(topK).fill(Number.NEGATIVE_INFINITY);
  for (let expert = 0; expert < weights.length; expert++) {
    const key = Math.log(random()) / weights[expert]!;
    if (key <= keys[topK - 1]!) continue;
    let at = topK - 1;
    for (; at > 0 && keys[at - 1]! < key; at--) {
      keys[at] = keys[at - 1]!;
      ids[first + at] = ids[first + at - 1]!;
    }
    keys[at] = key;
    ids[first + at] = expert;
  }
}

function shuffled(count: number, random: () => number): number[] {
  const list = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [list[i], list[j]] = [list[j]!, list[i]!];
  }
  return list;
}

/** Numbers in (0, 1) from Marsaglia's 32-bit xorshift, whose state is never 0. */
function randomFrom(seed: number): () => number {
  let state = (Math.imul(seed, 0x9e37_79b1) ^ 0x6a09_e667) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}
