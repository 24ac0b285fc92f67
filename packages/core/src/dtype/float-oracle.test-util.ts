// SPDX-License-Identifier: Apache-2.0
// An oracle of conversions that knows only what the patterns stand for and compares distances.

import type { FloatDType } from './dtype.js';

export type Narrow = 'f16' | 'bf16' | 'f8e4m3' | 'f8e5m2' | 'e2m1';
export type Target = FloatDType | 'e2m1';

interface Spec {
  readonly exponentBits: number;
  readonly mantissaBits: number;
  readonly nanPattern: number;
  /** What overflow gives. */
  readonly overflow: number;
  isNan(magnitude: number): boolean;
  isInfinity(magnitude: number): boolean;
}

const never = (): boolean => false;
const specs: { readonly [N in Narrow]: Spec } = {
  f16: {
    exponentBits: 5,
    mantissaBits: 10,
    nanPattern: 0x7fff,
    overflow: 0x7c00,
    isNan: (p) => p > 0x7c00,
    isInfinity: (p) => p === 0x7c00,
  },
  bf16: {
    exponentBits: 8,
    mantissaBits: 7,
    nanPattern: 0x7fff,
    overflow: 0x7f80,
    isNan: (p) => p > 0x7f80,
    isInfinity: (p) => p === 0x7f80,
  },
  f8e4m3: {
    exponentBits: 4,
    mantissaBits: 3,
    nanPattern: 0x7f,
    overflow: 0x7e,
    isNan: (p) => p === 0x7f,
    isInfinity: never,
  },
  f8e5m2: {
    exponentBits: 5,
    mantissaBits: 2,
    nanPattern: 0x7f,
    overflow: 0x7b,
    isNan: (p) => p > 0x7c,
    isInfinity: (p) => p === 0x7c,
  },
  e2m1: {
    exponentBits: 2,
    mantissaBits: 1,
    nanPattern: 7,
    overflow: 7,
    isNan: never,
    isInfinity: never,
  },
};
export const narrowNames = Object.keys(specs) as Narrow[];
export const narrowDTypes = ['f16', 'bf16', 'f8e4m3', 'f8e5m2'] as const;
export const floats: readonly FloatDType[] = ['f64', 'f32', ...narrowDTypes];

export const bitsOf = (name: Narrow): number => 1 + specs[name].exponentBits + specs[name].mantissaBits;

/** The value of a pattern from the definition of a binary float. */
export function valueOfPattern(name: Narrow, pattern: number): number {
  const { exponentBits, mantissaBits, isNan, isInfinity } = specs[name];
  const signWeight = 2 ** (exponentBits + mantissaBits);
  const sign = pattern >= signWeight ? -1 : 1;
  const magnitude = pattern % signWeight;
  if (isNan(magnitude)) return Number.NaN;
  if (isInfinity(magnitude)) return sign * Number.POSITIVE_INFINITY;
  const bias = 2 ** (exponentBits - 1) - 1;
  const field = Math.floor(magnitude / 2 ** mantissaBits);
  const fraction = (magnitude % 2 ** mantissaBits) / 2 ** mantissaBits;
  return sign * (field === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (field - bias));
}

/** Values of the patterns 0, 1, 2, ... up to the greatest finite one, ascending. */
export const finite = Object.fromEntries(
  narrowNames.map((name) => {
    const values: number[] = [];
    for (let p = 0; Number.isFinite(valueOfPattern(name, p)) && p < 2 ** (bitsOf(name) - 1); p++) {
      values.push(valueOfPattern(name, p));
    }
    return [name, values];
  }),
) as { readonly [N in Narrow]: number[] };

/** The value above finite[p]; above the greatest, where the same spacing would continue. */
export function above(name: Narrow, p: number): number {
  const values = finite[name];
  const last = values.length - 1;
  return p < last ? values[p + 1]! : 2 * values[last]! - values[last - 1]!;
}

/** Nothing here rounds: a midpoint of neighbours needs one bit more than they have, far fewer than a double's 53. */
export function nearestPattern(name: Narrow, value: number): number {
  const { nanPattern, overflow } = specs[name];
  if (Number.isNaN(value)) return nanPattern;
  const sign = Object.is(value, -0) || value < 0 ? 2 ** (bitsOf(name) - 1) : 0;
  const values = finite[name];
  const magnitude = Math.abs(value);
  let low = 0;
  let high = values.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (values[middle]! <= magnitude) low = middle;
    else high = middle;
  }
  const midpoint = (values[low]! + above(name, low)) / 2;
  const up = magnitude > midpoint || (magnitude === midpoint && low % 2 === 1);
  const pattern = up ? low + 1 : low;
  return sign + (pattern < values.length ? pattern : overflow);
}

const scalar = new DataView(new ArrayBuffer(8));

/** f64 -> f32 in exact integers: units of the f32 spacing, remainder against half of it. */
export function nearestF32(value: number): bigint {
  if (Number.isNaN(value)) return 0x7fffffffn;
  scalar.setFloat64(0, value);
  const bits = scalar.getBigUint64(0);
  const sign = (bits >> 63n) << 31n;
  if (!Number.isFinite(value)) return sign | 0x7f800000n;
  const field = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const significand = field === 0 ? fraction : fraction | (1n << 52n);
  const scale = Math.max(field, 1) - 1075; // value = significand * 2^scale
  const spacing = Math.max(scale + 52 - 23, -149); // both exponents of two
  const shift = BigInt(spacing - scale); // at least 29
  const half = 1n << (shift - 1n);
  let units = significand >> shift;
  const rest = significand - (units << shift);
  if (rest > half || (rest === half && units % 2n === 1n)) units += 1n;
  const magnitude = units + (BigInt(spacing + 149) << 23n);
  return sign | (magnitude > 0x7f800000n ? 0x7f800000n : magnitude);
}

export function expectedBits(to: Target, value: number): bigint {
  if (to === 'f32') return nearestF32(value);
  if (to !== 'f64') return BigInt(nearestPattern(to, value));
  if (Number.isNaN(value)) return 0x7fffffffffffffffn;
  scalar.setFloat64(0, value);
  return scalar.getBigUint64(0);
}
