// SPDX-License-Identifier: Apache-2.0
// Draws what each rank routes in a step, as a case describes it.

import type { RoutingSpec } from '../cases/ep-case.js';
import type { Routing } from '../oracle/routing.js';
import { drawWeights, wordsOf } from './step-data.js';

/** What routings are drawn for. */
export interface RoutedGroup {
  /** `experts[r]`: those of rank r. */
  readonly placement: readonly (readonly number[])[];
  readonly count: number;
  readonly topK: number;
  readonly maxTokens: number;
}

/** One per rank. */
export function drawRoutings(spec: RoutingSpec, group: RoutedGroup, epoch: number): Routing[] {
  const { topK, maxTokens, placement } = group;
  const words = wordsOf('ids', epoch);
  const weightWords = wordsOf('weights', epoch);
  return placement.map((_, rank) => {
    const tokens = tokensOf(spec, group, rank, epoch);
    const first = rank * maxTokens * topK;
    const ids = new Int32Array(tokens * topK).fill(-1);
    for (let token = 0; token < tokens; token++) {
      const listed = spec.listed?.[rank]?.[token];
      // A stretch of indices of its own, so that draws of a token do not depend on others.
      const draw = (i: number): number => words.low((rank * maxTokens + token) * 4096 + i);
      const chosen = listed ?? choose(spec, group, rank, token, draw);
      for (const [k, id] of chosen.entries()) {
        const hole = listed === undefined && draw(2048 + k) % 100 < (spec.holes ?? 0);
        ids[token * topK + k] = hole ? -1 : id;
      }
    }
    return { tokens, ids, weights: drawWeights(weightWords, spec.weights ?? 'usual', first, tokens * topK) };
  });
}

function tokensOf(spec: RoutingSpec, { maxTokens }: RoutedGroup, rank: number, epoch: number): number {
  if (spec.listed !== undefined) return spec.listed[rank]?.length ?? 0;
  const { tokens = 'full' } = spec;
  if (tokens === 'full') return maxTokens;
  if (tokens !== 'ragged') return tokens[rank % tokens.length]!;
  const word = wordsOf('tokenCounts', epoch).low(rank);
  // One rank in four has none, one in four has the most.
  return word % 4 === 0 ? 0 : word % 4 === 1 ? maxTokens : (word >>> 2) % (maxTokens + 1);
}

function choose(
  { ids }: RoutingSpec,
  { placement, count, topK }: RoutedGroup,
  rank: number,
  token: number,
  draw: (i: number) => number,
): number[] {
  switch (ids) {
    case 'none':
      return [];
    case 'striped':
      return Array.from({ length: topK }, (_, k) => (token * topK + k) % count);
    case 'uniform':
      return distinct(everyExpert(count), topK, draw);
    case 'hot':
      return draw(4000) % 4 === 0
        ? distinct(everyExpert(count), topK, draw)
        : Array.from({ length: topK }, (_, k) => k);
    case 'one-rank':
    case 'own-rank': {
      const target = ids === 'own-rank' ? rank : placement.length - 1;
      return distinct([...new Set(placement[target])], topK, draw);
    }
  }
}

function everyExpert(count: number): number[] {
  return Array.from({ length: count }, (_, id) => id);
}

/** As many as there are, at most `wanted`, in random order. */
function distinct(from: readonly number[], wanted: number, draw: (i: number) => number): number[] {
  const left = [...from];
  const chosen: number[] = [];
  for (let i = 0; i < wanted && left.length > 0; i++) chosen.push(...left.splice(draw(i) % left.length, 1));
  return chosen;
}
