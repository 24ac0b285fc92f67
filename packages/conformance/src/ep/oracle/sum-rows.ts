// SPDX-License-Identifier: Apache-2.0
// The combine formula, one element at a time: y = round(sum over ranks of round_payload(sum over that rank's entries of w * x)).

import type { EpReduction } from '@nccl-ext/core/contract';
import { roundRow } from './floats.js';
import { dequantiseRow, quantiseRow } from './quantise.js';

/** One row that is added. */
export interface Term {
  readonly rank: number;
  /** Undefined: the row is added as it is. */
  readonly weight: number | undefined;
  readonly row: Float32Array;
}

export interface SumRules {
  readonly dtype: 'f32' | 'f16' | 'bf16';
  readonly hidden: number;
  readonly reduction: EpReduction;
  readonly quantization: 'none' | 'fp8';
}

/** y before its last rounding. `terms` come in top-k order. */
export function sumTerms(terms: readonly Term[], rules: SumRules): Float32Array {
  if (terms.length === 0) return new Float32Array(rules.hidden);
  if (rules.reduction === 'token') return sumOf(terms.map(weighted));
  const ranks = [...new Set(terms.map(({ rank }) => rank))].sort((a, b) => a - b);
  const payloads = ranks.map((rank) =>
    payloadOf(sumOf(terms.filter((term) => term.rank === rank).map(weighted)), rules),
  );
  return sumOf(payloads);
}

function weighted({ weight, row }: Term): Float32Array {
  return weight === undefined ? row : row.map((x) => Math.fround(weight * x));
}

/** From the first row on, so that a sum of one row is that row. */
function sumOf(rows: readonly Float32Array[]): Float32Array {
  const sum = Float32Array.from(rows[0]!);
  for (const row of rows.slice(1)) for (const [i, x] of row.entries()) sum[i] = Math.fround(sum[i]! + x);
  return sum;
}

function payloadOf(inner: Float32Array, { dtype, quantization }: SumRules): Float32Array {
  if (quantization === 'fp8') return dequantiseRow('fp8', quantiseRow('fp8', inner));
  return dtype === 'f32' ? inner : roundRow(dtype, inner);
}
