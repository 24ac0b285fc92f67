// SPDX-License-Identifier: Apache-2.0
// Writes what host experts computed to the rows that combine reads: weighted, summed in top-k order, rounded once.

import { castArray, dtypeBytes, NcclExtError } from '@nccl-ext/core';
import type { ExpertCall } from './expert-layer.js';
import { type AssignedRows, type RowTerm, rowBytesOf } from './host-rows.js';

/** `results[e]`: f(x) for every row of local expert e. */
export function combineResults(
  call: ExpertCall,
  { rowsOf, termsOf }: AssignedRows,
  results: readonly Float32Array[],
): void {
  const hidden = call.tokens.shape.at(-1)!;
  for (const [local, rows] of rowsOf.entries())
    requireResult(call, local, results[local], rows.length * hidden);
  const { out } = call;
  const rowBytes = hidden * dtypeBytes(out.dtype);
  const sum = new Float32Array(hidden);
  const bytes = new Uint8Array(sum.buffer);
  for (const [row, terms] of termsOf) {
    sumTerms(sum, terms, results);
    castArray('f32', bytes, out.dtype, rowBytesOf(out, row, rowBytes));
  }
}

/** A sum starts with its first term; products and sums are rounded to f32 one by one. */
function sumTerms(sum: Float32Array, terms: readonly RowTerm[], results: readonly Float32Array[]): void {
  const hidden = sum.length;
  for (const [position, { expert, index, weight }] of terms.entries()) {
    const values = results[expert]!;
    for (let h = 0; h < hidden; h++) {
      const product = Math.fround(weight * values[index * hidden + h]!);
      sum[h] = position === 0 ? product : sum[h]! + product;
    }
  }
}

function requireResult(call: ExpertCall, local: number, result: unknown, elements: number): void {
  if (result instanceof Float32Array && result.length === elements) return;
  const got =
    result instanceof Float32Array ? `${result.length} values` : 'something that is no Float32Array';
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `Expert ${call.localExperts[local]} must return a Float32Array of ${elements} values, got ${got}.`,
    { rank: call.stream.communicator.rank, op: 'hostExperts', expected: elements },
  );
}
