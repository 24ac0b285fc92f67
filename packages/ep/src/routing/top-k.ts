// SPDX-License-Identifier: Apache-2.0
// Which experts a token goes to, and with what weights, from a router's scores, on the host.

import { requireObject } from '@nccl-ext/core/extend';
import { invalid, requireCount, requireList } from '../config/require-values.js';
import { type GroupLimit, limitGroups } from './limit-groups.js';
import { type Scoring, scoreRow } from './score-row.js';

export interface TopKInput {
  /** [B, E], row-major: the router's outputs. */
  readonly scores: ArrayLike<number>;
  /** E. */
  readonly experts: number;
  /** K. */
  readonly k: number;
  /** How scores become weights; default `softmax`. */
  readonly scoring?: Scoring | undefined;
  /** Only experts of the best groups are chosen from. */
  readonly groups?: GroupLimit | undefined;
  /** [E], added for the choice only, as where load is balanced without an auxiliary loss. */
  readonly bias?: ArrayLike<number> | undefined;
  /** Weights of a token sum to 1. Default: with `sigmoid`. */
  readonly renormalize?: boolean | undefined;
  /** Weights are multiplied by it, after all else. Default 1. */
  readonly scale?: number | undefined;
}

/** What handles take: ids for `route`, weights for `dispatch`. */
export interface TopK {
  /** [B, K] ids, best first. */
  readonly idx: Int32Array;
  /** [B, K]. */
  readonly weights: Float32Array;
  /** B. */
  readonly tokens: number;
}

/**
 * The k best experts of every token; of equal ones those with lower ids. Computed in double precision, rounded to f32 in the end. Sigmoid scores, a
 * bias and groups are the router of DeepSeek-V3 (arXiv 2412.19437, 2.1.2).
 *
 * @throws ERR_INVALID_ARGUMENT naming the field; NaN is refused.
 * @example
 * ```ts
 * const { idx } = topK({ scores: [0.1, 2, 1, 0.3], experts: 4, k: 2 });
 * Array.from(idx); // [1, 2]
 * ```
 */
export function topK(input: TopKInput): TopK {
  requireObject('input', input);
  const { scores, experts, k, scoring = 'softmax', groups, bias, scale = 1 } = input;
  const { renormalize = scoring === 'sigmoid' } = input;
  requireList('scores', scores);
  requireCount('experts', experts, 1);
  requireCount('k', k, 1, experts);
  if (scores.length % experts !== 0)
    throw invalid('scores', `must have a multiple of experts = ${experts} values`, scores.length);
  if (bias !== undefined) requireList('bias', bias);
  if (bias !== undefined && bias.length !== experts)
    throw invalid('bias', `must have experts = ${experts} values`, bias.length);
  for (let e = 0; e < (bias?.length ?? 0); e++)
    if (!Number.isFinite(bias![e])) throw invalid(`bias[${e}]`, 'must be a finite number', bias![e]);
  if (!Number.isFinite(scale)) throw invalid('scale', 'must be a finite number', scale);
  const tokens = scores.length / experts;
  const idx = new Int32Array(tokens * k);
  const weights = new Float32Array(tokens * k);
  const weightOf = new Float64Array(experts);
  const choice = new Float64Array(experts);
  for (let token = 0; token < tokens; token++) {
    scoreRow(scores, token, scoring, weightOf);
    for (let e = 0; e < experts; e++) choice[e] = weightOf[e]! + (bias?.[e] ?? 0);
    if (groups !== undefined) limitGroups(choice, k, groups);
    const chosen = best(choice, k);
    const sum = renormalize ? chosen.reduce((total, e) => total + weightOf[e]!, 0) : 1;
    for (const [position, expert] of chosen.entries()) {
      idx[token * k + position] = expert;
      // All weights 0: nothing to normalise.
      weights[token * k + position] = (weightOf[expert]! / (sum === 0 ? 1 : sum)) * scale;
    }
  }
  return { idx, weights, tokens };
}

/** Positions of the k largest values, largest first, lower positions first among equal ones. */
function best(values: Float64Array, k: number): number[] {
  const chosen: number[] = [];
  for (let candidate = 0; candidate < values.length; candidate++) {
    const value = values[candidate]!;
    let at = chosen.length;
    while (at > 0 && values[chosen[at - 1]!]! < value) at--;
    if (at < k) chosen.splice(at, 0, candidate);
    if (chosen.length > k) chosen.pop();
  }
  return chosen;
}
