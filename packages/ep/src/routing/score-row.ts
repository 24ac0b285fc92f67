// SPDX-License-Identifier: Apache-2.0
// From a router's outputs for one token to the weights of its experts.

import { invalid } from '../config/require-values.js';

/** `none`: scores are weights already. */
export type Scoring = 'softmax' | 'sigmoid' | 'none';

/** Writes the weights of token number `token` to `out`, which has E values. */
export function scoreRow(
  scores: ArrayLike<number>,
  token: number,
  scoring: Scoring,
  out: Float64Array,
): void {
  const first = token * out.length;
  let largest = Number.NEGATIVE_INFINITY;
  for (let e = 0; e < out.length; e++) {
    const score = scores[first + e]!;
    if (typeof score !== 'number' || Number.isNaN(score))
      throw invalid(`scores[${token}, ${e}]`, 'must be a number', score);
    largest = Math.max(largest, score);
    out[e] = score;
  }
  switch (scoring) {
    case 'none':
      return;
    case 'sigmoid':
      for (let e = 0; e < out.length; e++) out[e] = 1 / (1 + Math.exp(-out[e]!));
      return;
    case 'softmax': {
      if (!Number.isFinite(largest))
        throw invalid(`scores of token ${token}`, 'must have a finite largest value', largest);
      let sum = 0;
      for (let e = 0; e < out.length; e++) {
        out[e] = Math.exp(out[e]! - largest);
        sum += out[e]!;
      }
      for (let e = 0; e < out.length; e++) out[e] = out[e]! / sum;
      return;
    }
    default:
      throw invalid('scoring', 'must be softmax, sigmoid or none', scoring);
  }
}
