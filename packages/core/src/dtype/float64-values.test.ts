// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { fromFloat64, type NumberDType, toFloat64 } from './float64-values.js';

const cases: readonly (readonly [NumberDType, readonly number[]])[] = [
  ['f64', [1 / 3, -0, Number.POSITIVE_INFINITY]],
  ['f32', [0.5, -0, Number.NEGATIVE_INFINITY]],
  ['f16', [65504, 2 ** -24, Number.NaN]],
  ['bf16', [1.5, -(2 ** -133)]],
  ['f8e4m3', [448, -(2 ** -9)]],
  ['f8e5m2', [57344, 2 ** -16]],
  ['f4e2m1x2', [0.5, -6, 3, -0]],
  ['i32', [-(2 ** 31), 2 ** 31 - 1]],
  ['u32', [0, 2 ** 32 - 1]],
  ['i16', [-32768, 32767]],
  ['u16', [0, 65535]],
  ['i8', [-128, 127]],
  ['u8', [0, 255]],
  ['bool', [0, 1, 1]],
  ['f32', []],
  ['i32', []],
];

describe('toFloat64 and fromFloat64', () => {
  it.each(cases)('%s: values come back', (dtype, values) => {
    expect([...toFloat64(dtype, fromFloat64(dtype, values))]).toEqual(values);
  });

  it('read unaligned bytes', () => {
    const bytes = new Uint8Array(9);
    bytes.set(fromFloat64('u32', [7, 8]), 1);
    expect([...toFloat64('u32', bytes.subarray(1))]).toEqual([7, 8]);
  });

  it('round floats once', () => {
    expect([...fromFloat64('bf16', [1 + 2 ** -8 + 2 ** -40])]).toEqual([0x81, 0x3f]);
  });

  it.each([
    ['u8', [0, 256], 1],
    ['u8', [-1], 0],
    ['i32', [1.5], 0],
    ['i16', [Number.NaN], 0],
    ['bool', [0, 1, 2], 2],
  ] as const)('%s refuses %j', (dtype, values, index) => {
    expect(() => fromFloat64(dtype, values)).toThrow(
      expect.objectContaining({
        code: 'ERR_INVALID_ARGUMENT',
        field: `values[${index}]`,
        seen: values[index],
      }),
    );
  });

  it('refuse an odd number of packed values and a cut element', () => {
    expect(() => fromFloat64('f4e2m1x2', [1, 2, 3])).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT' }),
    );
    expect(() => toFloat64('f32', new Uint8Array(5))).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field: 'bytes' }),
    );
  });

  it('refuse 64-bit integers and say what to use', () => {
    const refusal = expect.objectContaining({ code: 'ERR_CAST', field: 'dtype' });
    expect(() => toFloat64('i64' as never, new Uint8Array(8))).toThrow(refusal);
    expect(() => fromFloat64('u64' as never, [1])).toThrow(refusal);
    expect(() => fromFloat64('u64' as never, [1])).toThrow("typedArrayFor('u64')");
  });
});
