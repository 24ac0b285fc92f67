// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { castArray } from './cast-array.js';
import { dtypeBytes, type FloatDType } from './dtype.js';
import { decodeFloat, encodeFloat } from './float-bits.js';
import { typedArrayFor } from './typed-array.js';

const floats: readonly FloatDType[] = ['f64', 'f32', 'f16', 'bf16', 'f8e4m3', 'f8e5m2'];

function throughArray(dtype: FloatDType, value: number): number | bigint {
  const bytes = new Uint8Array(8);
  castArray(
    'f64',
    new Uint8Array(Float64Array.of(value).buffer),
    dtype,
    bytes.subarray(0, dtypeBytes(dtype)),
  );
  const view = new DataView(bytes.buffer);
  return dtype === 'f64' ? view.getBigUint64(0, true) : view.getUint32(0, true);
}

describe('encodeFloat and decodeFloat', () => {
  it.each(floats)('%s: the same bits and values as castArray', (dtype) => {
    fc.assert(
      fc.property(fc.oneof(fc.double(), fc.float(), fc.double({ min: -500, max: 500 })), (value) => {
        fc.pre(dtype !== 'f64' || !Number.isNaN(value));
        const bits = encodeFloat(dtype, value);
        expect(bits).toBe(throughArray(dtype, value));
        const decoded = decodeFloat(dtype, bits);
        expect(encodeFloat(dtype, decoded)).toBe(bits);
      }),
    );
  });

  it('gives canonical NaNs', () => {
    expect(floats.map((dtype) => encodeFloat(dtype, Number.NaN))).toEqual([
      0x7fffffffffffffffn,
      0x7fffffff,
      0x7fff,
      0x7fff,
      0x7f,
      0x7f,
    ]);
  });

  it('decodes what the table of each type says', () => {
    expect(decodeFloat('f64', 0x3ff8000000000000n)).toBe(1.5);
    expect(decodeFloat('f32', 0xbfc00000)).toBe(-1.5);
    expect(decodeFloat('f16', 0x0001)).toBe(2 ** -24);
    expect(decodeFloat('bf16', 0x8000)).toBe(-0);
    expect(decodeFloat('f8e4m3', 0x7e)).toBe(448);
    expect(decodeFloat('f8e4m3', 0xff)).toBeNaN();
    expect(decodeFloat('f8e5m2', 0xfc)).toBe(Number.NEGATIVE_INFINITY);
  });

  it('refuses bits that the type does not have', () => {
    const refused = (bits: unknown): unknown =>
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field: 'bits', seen: bits });
    for (const bits of [-1, 256, 1.5, Number.NaN]) {
      expect(() => decodeFloat('f8e4m3', bits)).toThrow(refused(bits));
    }
    expect(() => decodeFloat('f32', 2 ** 32)).toThrow(/f32 takes an integer from 0 to 0xffffffff, a number/);
    expect(() => decodeFloat('f16', 1n as never)).toThrow(refused(1n));
    expect(() => decodeFloat('f64', 1 as never)).toThrow(refused(1));
    expect(() => decodeFloat('f64', -1n)).toThrow(refused(-1n));
    expect(() => decodeFloat('f64', 1n << 64n)).toThrow(/0xffffffffffffffffn, a bigint/);
  });
});

describe('typedArrayFor', () => {
  it('views encoded bits', () => {
    const bits = new (typedArrayFor('f16'))(2);
    bits.set([encodeFloat('f16', 1.5), encodeFloat('f16', -2)]);
    expect([...new Uint8Array(bits.buffer)]).toEqual([0x00, 0x3e, 0x00, 0xc0]);
  });
});
