// SPDX-License-Identifier: Apache-2.0
// Draws what the ranks of one step bring: ids, weights, token rows, rows for combine, gradients.
//
// Values come from a 64-bit mix of (tensor, epoch, global index), so that no row looks like that of another token, rank or step.

import { type DType, dtypeBytes, encodeFloat, isFloatDType } from '@nccl-ext/core';
import { castValues } from '../../oracle/cast-values.js';
import { blockKeys, mix32 } from '../../oracle/mix.js';

/** Which tensor of a step, for the mix. */
export const streamsOfValues = {
  ids: 1,
  weights: 2,
  tokens: 3,
  scales: 4,
  rows: 5,
  gradients: 6,
  gradientRows: 7,
  gradientWeights: 8,
  tokenCounts: 9,
} as const;

/** A source of 32-bit words, by global index. */
export interface Words {
  low(index: number): number;
  high(index: number): number;
}

export function wordsOf(name: keyof typeof streamsOfValues, epoch: number): Words {
  const [lowA, lowB, highA, highB] = blockKeys({ tensor: streamsOfValues[name], epoch, pass: 0 }, 0);
  return {
    low: (index) => mix32(index, lowA, lowB),
    high: (index) => mix32(index, highA, highB),
  };
}

/** How elements are drawn: any bits, ordinary numbers between 2^-4 and 2^4 of either sign, or those of {@link castValues}. */
export type ValueKind = 'bits' | 'usual' | 'edges';

/** `count` elements whose global indices start at `first`. */
export function drawElements(
  words: Words,
  dtype: DType,
  kind: ValueKind,
  first: number,
  count: number,
): Uint8Array {
  const bytes = dtypeBytes(dtype);
  const out = new Uint8Array(count * bytes);
  const view = new DataView(out.buffer);
  const edge = kind === 'edges' && isFloatDType(dtype) ? castValues(dtype) : undefined;
  for (let i = 0; i < count; i++) {
    const [low, high] = [words.low(first + i), words.high(first + i)];
    const bits = edge !== undefined ? edge(low, high)[0] : kind === 'bits' ? low : usual(dtype, low, high);
    if (bytes === 1) view.setUint8(i, bits);
    else if (bytes === 2) view.setUint16(2 * i, bits, true);
    else view.setUint32(4 * i, bits, true);
  }
  return out;
}

function usual(dtype: DType, low: number, high: number): number {
  const magnitude = (1 + low / 2 ** 32) * 2 ** ((high & 7) - 4);
  const value = (high >>> 31 === 0 ? 1 : -1) * magnitude;
  return encodeFloat(dtype as 'f32', value);
}

/** A weight from 0 to 1, or one that is hard to order and to sum. */
export function drawWeights(
  words: Words,
  kind: 'usual' | 'edges',
  first: number,
  count: number,
): Float32Array {
  const hard = [Number.NaN, 0, -0, Number.POSITIVE_INFINITY, -0.25, 0.25, 0.25, 2 ** -149, 1, 1];
  return Float32Array.from({ length: count }, (_, i) => {
    const word = words.low(first + i);
    return kind === 'edges' ? hard[word % hard.length]! : (word + 1) / 2 ** 32;
  });
}
