// SPDX-License-Identifier: Apache-2.0
// Zeros, subnormals, infinities and NaNs, random bits, and midpoints of f32, against the oracle.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesOf, differences } from './float-differences.test-util.js';
import { floats } from './float-oracle.test-util.js';

const specialF32 = [
  0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x807fffff, 0x800000, 0x80800000, 0x7f7fffff, 0xff7fffff,
  0x7f800000, 0xff800000, 0x7f800001, 0xff800001, 0x7fbfffff, 0x7fc00000, 0xffc00000, 0x7fc12345, 0xffffffff,
  0x7f810000,
];
const specialF64 = [
  0n,
  1n << 63n,
  1n,
  (1n << 63n) | 1n,
  0x000fffffffffffffn,
  0x0010000000000000n,
  0x7fefffffffffffffn,
  0xffefffffffffffffn,
  0x7ff0000000000000n,
  0xfff0000000000000n,
  0x7ff0000000000001n,
  0xfff0000000000001n,
  0x7ff0000100000000n,
  0x7ff8000000000000n,
  0xfff8000000000000n,
  0x7ff8dead0000beefn,
  0xffffffffffffffffn,
  0x47efffffe0000000n, // the greatest f32
  0x47efffffefffffffn, // just below and at the f32 overflow midpoint
  0x47effffff0000000n,
  0x36a0000000000000n, // the least f32 subnormal, its half and their neighbours
  0x3690000000000000n,
  0x3690000000000001n,
  0x368fffffffffffffn,
];

describe('special values and random bits', () => {
  const singles = (bits: Uint32Array): Float32Array => new Float32Array(bits.buffer);
  const doubles = (bits: BigUint64Array): Float64Array => new Float64Array(bits.buffer);

  for (const to of [...floats, 'e2m1'] as const) {
    if (to !== 'f32') {
      it(`f32 to ${to}`, () => {
        const fixed = Uint32Array.from(specialF32);
        expect(differences('f32', bytesOf(fixed), (i) => singles(fixed)[i]!, to)).toEqual([]);
        fc.assert(
          fc.property(fc.uint32Array({ minLength: 200, maxLength: 200 }), (random) => {
            const bits = Uint32Array.from(random);
            const values = singles(bits);
            expect(differences('f32', bytesOf(bits), (i) => values[i]!, to)).toEqual([]);
          }),
        );
      });
    }
    if (to !== 'f64') {
      it(`f64 to ${to}`, () => {
        const fixed = BigUint64Array.from(specialF64);
        expect(differences('f64', bytesOf(fixed), (i) => doubles(fixed)[i]!, to)).toEqual([]);
        // Exponents near the target's own, where random 64-bit patterns hardly ever fall.
        const near = fc
          .tuple(fc.bigInt(0n, 1n), fc.integer({ min: -160, max: 130 }), fc.bigInt(0n, (1n << 52n) - 1n))
          .map(([sign, exponent, mantissa]) => (sign << 63n) | (BigInt(exponent + 1023) << 52n) | mantissa);
        const any = fc.oneof(near, fc.bigInt(0n, (1n << 64n) - 1n));
        fc.assert(
          fc.property(fc.array(any, { minLength: 60, maxLength: 60 }), (random) => {
            const bits = BigUint64Array.from(random);
            const values = doubles(bits);
            expect(differences('f64', bytesOf(bits), (i) => values[i]!, to)).toEqual([]);
          }),
        );
      });
    }
  }

  it('f64 to f32 at midpoints of f32 neighbours and beside them', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0x7f7fffff }), fc.boolean(), (pattern, negative) => {
        const pair = singles(Uint32Array.of(pattern, pattern + 1));
        const upper = Number.isFinite(pair[1]!) ? pair[1]! : 2 ** 128;
        const values = new Float64Array(4).fill(((pair[0]! + upper) / 2) * (negative ? -1 : 1));
        const bits = new BigUint64Array(values.buffer);
        bits[1]! += 1n;
        bits[2]! -= 1n;
        expect(differences('f64', bytesOf(values), (i) => values[i]!, 'f32')).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });
});
