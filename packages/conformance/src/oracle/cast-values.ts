// SPDX-License-Identifier: Apache-2.0
// Values that show what a cast does: ordinary magnitudes, ties of every narrow format, and the ends of the number line.

import { dtypeBytes, encodeFloat, type FloatDType } from '@nccl-ext/core';

/** Bits of an element from 64 random ones: [low word, high word]; narrow dtypes use the low word only. */
export type CastValue = (low: number, high: number) => readonly [low: number, high: number];

/** Stored bits of the significand. */
const mantissaBits: Readonly<Record<FloatDType, number>> = {
  f64: 52,
  f32: 23,
  f16: 10,
  bf16: 7,
  f8e4m3: 3,
  f8e5m2: 2,
};

/** Greatest finite values of the formats, their midpoints to overflow, and magnitudes around their smallest ones. */
const edges: readonly number[] = [
  0,
  1,
  6,
  448,
  464,
  480,
  57_344,
  61_440,
  65_504,
  65_519,
  65_520,
  3.3895313892515355e38,
  3.396e38,
  3.4028234663852886e38,
  3.4028235677973366e38,
  1.7976931348623157e308,
  2 ** -6,
  2 ** -9,
  2 ** -10,
  2 ** -14,
  2 ** -16,
  2 ** -17,
  2 ** -24,
  2 ** -25,
  2 ** -126,
  2 ** -133,
  2 ** -149,
  2 ** -150,
  2 ** -1022,
  5e-324,
  Number.POSITIVE_INFINITY,
  Number.NaN,
];

/** How source elements of a converting tensor are made. One in eight is an edge, one in eight a likely tie, the rest lie in [2^-4, 2^4). */
export function castValues(dtype: FloatDType): CastValue {
  const special = edges.flatMap((edge) => [edge, -edge]).map((edge) => words(dtype, edge));
  const fraction = mantissaBits[dtype];
  return (low, high) => {
    const kind = high & 7;
    if (kind === 0) return special[low % special.length]!;
    const exponent = ((high >>> 3) & 7) - 4;
    // A tie has one bit more than the target keeps: cut the significand to a length from 1 to 16.
    const kept = kind === 1 ? Math.min(fraction, 1 + ((high >>> 6) & 15)) : fraction;
    const unit = 2 ** kept;
    const significand = 1 + Math.floor((low / 2 ** 32) * unit) / unit;
    const value = (high >>> 31 === 0 ? 1 : -1) * significand * 2 ** exponent;
    return words(dtype, value, kind === 1 ? 0 : high);
  };
}

/** `filler` gives an f64 the significand bits that a 32-bit draw cannot. */
function words(dtype: FloatDType, value: number, filler = 0): readonly [number, number] {
  const bits = encodeFloat(dtype, value);
  if (typeof bits === 'number') return [bits >>> 0, 0];
  const low = Number(bits & 0xffff_ffffn);
  return [dtypeBytes(dtype) === 8 ? (low ^ (filler >>> 11)) >>> 0 : low, Number(bits >> 32n)];
}
