// SPDX-License-Identifier: Apache-2.0
// Quantises a row as the three recipes say, a block at a time, in doubles wherever the recipe asks for exact arithmetic.

import { decodeRow, encodeRow } from './floats.js';

/** Recipes that make scales. */
export type MadeQuantization = 'fp8' | 'fp8-pow2' | 'mxfp8';

/** A quantised row. */
export interface QuantisedRow {
  /** f8e4m3, one per element. */
  readonly codes: Uint8Array;
  /** What codes are multiplied by, one per block. */
  readonly scales: readonly number[];
  /** Scales as they are stored: f32, for mxfp8 the exponent byte. */
  readonly scaleBytes: Uint8Array;
}

/** Channels that share a scale. */
export const blockOf: Readonly<Record<MadeQuantization, number>> = { fp8: 128, 'fp8-pow2': 128, mxfp8: 32 };

const largestF32 = 3.4028234663852886e38;
const largestFp8 = 448;

export function quantiseRow(recipe: MadeQuantization, row: Float32Array): QuantisedRow {
  const block = blockOf[recipe];
  const codes: number[] = [];
  const scales: number[] = [];
  for (let first = 0; first < row.length; first += block) {
    const values = row.slice(first, first + block);
    const scale = scaleOf(recipe, largestMagnitude(values));
    scales.push(scale);
    codes.push(
      ...encodeRow(
        'f8e4m3',
        Float32Array.from(values, (x) => Math.fround(x / scale)),
      ),
    );
  }
  const scaleBytes =
    recipe === 'mxfp8'
      ? Uint8Array.from(scales, (scale) => Math.log2(scale) + 127)
      : new Uint8Array(Float32Array.from(scales).buffer);
  return { codes: Uint8Array.from(codes), scales, scaleBytes };
}

/** f32(code) * scale, rounded to f32. */
export function dequantiseRow(recipe: MadeQuantization, { codes, scales }: QuantisedRow): Float32Array {
  const values = decodeRow('f8e4m3', codes);
  return values.map((value, i) => Math.fround(value * scales[Math.floor(i / blockOf[recipe])]!));
}

/** NaNs do not count; an infinity counts as the largest f32. */
function largestMagnitude(values: Float32Array): number {
  let amax = 0;
  for (const x of values) if (!Number.isNaN(x)) amax = Math.max(amax, Math.min(Math.abs(x), largestF32));
  return amax;
}

function scaleOf(recipe: MadeQuantization, amax: number): number {
  switch (recipe) {
    case 'fp8':
      // 1 also where the quotient underflows.
      return Math.fround(amax / largestFp8) || 1;
    case 'fp8-pow2': {
      if (amax === 0) return 1;
      // Doubles hold 448 times any f32 power of two exactly.
      let power = 2 ** -149;
      while (largestFp8 * power < amax) power *= 2;
      return power;
    }
    case 'mxfp8': {
      // OCP MX: the power of two of the block's largest value less that of the format's, 8; the least scale for a block of zeros.
      let exponent = -149;
      while (amax >= 2 ** (exponent + 1)) exponent++;
      const byte = amax === 0 ? 0 : Math.max(0, Math.min(254, exponent - 8 + 127));
      return 2 ** (byte - 127);
    }
  }
}
