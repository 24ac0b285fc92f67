// SPDX-License-Identifier: Apache-2.0
// The conversion rules as literal bits: one rounding, overflow from the midpoint on, saturation, NaN.

import { describe, expect, it } from 'vitest';
import { bytesOf, convert } from './float-differences.test-util.js';
import type { Target } from './float-oracle.test-util.js';

describe('double rounding', () => {
  const bitsFrom64 = (value: number, to: Target): bigint => {
    const values = Float64Array.of(value, 0);
    return convert('f64', bytesOf(values), to)(0);
  };

  it('does not happen on the way from f64', () => {
    // Just above a tie, by less than f32 can tell: by way of f32 each would go down to even.
    const hair = 2 ** -40;
    expect(bitsFrom64(1 + 2 ** -8 + hair, 'bf16')).toBe(0x3f81n);
    expect(bitsFrom64(1 + 2 ** -11 + hair, 'f16')).toBe(0x3c01n);
    expect(bitsFrom64(1 + 2 ** -4 + hair, 'f8e4m3')).toBe(0x39n);
    expect(bitsFrom64(1 + 2 ** -3 + hair, 'f8e5m2')).toBe(0x3dn);
    expect(bitsFrom64(1 + 2 ** -2 + hair, 'e2m1')).toBe(3n);
  });

  it('overflows as IEEE 754 says, from the midpoint on', () => {
    expect(bitsFrom64(65519.99999999999, 'f16')).toBe(0x7bffn);
    expect(bitsFrom64(65520, 'f16')).toBe(0x7c00n);
    expect(bitsFrom64(-(2 ** 128 - 2 ** 119), 'bf16')).toBe(0xff80n);
    expect(bitsFrom64(1e300, 'f32')).toBe(0x7f800000n);
  });
});

describe('the rules as literal bits', () => {
  it.each([
    ['f8e4m3', 448, 0x7en],
    ['f8e4m3', 464, 0x7en],
    ['f8e4m3', 480, 0x7en],
    ['f8e4m3', -1e9, 0xfen],
    ['f8e4m3', Number.POSITIVE_INFINITY, 0x7en],
    ['f8e4m3', Number.NEGATIVE_INFINITY, 0xfen],
    ['f8e4m3', Number.NaN, 0x7fn],
    ['f8e4m3', 2 ** -9, 1n],
    ['f8e4m3', 2 ** -10, 0n],
    ['f8e4m3', -(2 ** -10), 0x80n],
    ['f8e5m2', 57344, 0x7bn],
    ['f8e5m2', 65536, 0x7bn],
    ['f8e5m2', Number.NEGATIVE_INFINITY, 0xfbn],
    ['f8e5m2', Number.NaN, 0x7fn],
    ['e2m1', Number.NaN, 7n],
    ['e2m1', -7, 0xfn],
    ['e2m1', 5, 6n],
    ['e2m1', 0.25, 0n],
    ['e2m1', -0.25, 8n],
    ['e2m1', 0.75, 2n],
    ['f16', Number.NEGATIVE_INFINITY, 0xfc00n],
    ['bf16', -0, 0x8000n],
    ['f32', Number.NaN, 0x7fffffffn],
  ] as const)('%s of %d', (to, value, bits) => {
    expect(convert('f64', bytesOf(Float64Array.of(value, 0)), to)(0)).toBe(bits);
  });

  it('an infinity of f8e5m2 is one in f32 and saturates in f8e4m3', () => {
    expect(convert('f8e5m2', Uint8Array.of(0x7c, 0xfc), 'f32')(1)).toBe(0xff800000n);
    expect(convert('f8e5m2', Uint8Array.of(0x7c, 0xfc), 'f8e4m3')(1)).toBe(0xfen);
  });
});
