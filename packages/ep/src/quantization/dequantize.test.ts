// SPDX-License-Identifier: Apache-2.0
// Dequantised values are value x scale, each in f32.

import { decodeFloat, encodeFloat } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { dequantizeFp8, dequantizeMxfp8 } from './dequantize.js';

const hidden = 256;
const rows = Uint8Array.from({ length: 2 * hidden }, (_, i) => encodeFloat('f8e4m3', (i % 37) - 18));

describe('dequantizeFp8', () => {
  it('scales every block of every row', () => {
    const scales = new Float32Array([0.1, 3, 1, 2 ** -20]);
    const values = dequantizeFp8({ rows, hidden }, scales);
    expect(values.length).toBe(2 * hidden);
    for (const [i, value] of values.entries()) {
      const expected = Math.fround(decodeFloat('f8e4m3', rows[i]!) * scales[Math.floor(i / 128)]!);
      expect(value).toBe(expected);
    }
  });

  it('takes other blocks and f8e5m2', () => {
    const bytes = new Uint8Array(16).fill(encodeFloat('f8e5m2', 2));
    const values = dequantizeFp8({ rows: bytes, dtype: 'f8e5m2', hidden: 16 }, new Float32Array([1, 3]), 8);
    expect([...values]).toEqual([...Array(8).fill(2), ...Array(8).fill(6)]);
  });
});

describe('dequantizeMxfp8', () => {
  it('takes a power of two per 32 elements; 255 is NaN', () => {
    const scales = Uint8Array.from({ length: 16 }, (_, i) => (i === 15 ? 255 : 120 + i));
    const values = dequantizeMxfp8({ rows, hidden }, scales);
    for (const [i, value] of values.entries()) {
      const scale = scales[Math.floor(i / 32)]!;
      const expected = scale === 255 ? Number.NaN : decodeFloat('f8e4m3', rows[i]!) * 2 ** (scale - 127);
      expect(value).toBe(expected);
    }
  });
});

it.each([
  ['hidden', () => dequantizeFp8({ rows, hidden: 100 }, new Float32Array(4))],
  ['rows', () => dequantizeFp8({ rows: rows.subarray(1), hidden }, new Float32Array(4))],
  ['scales', () => dequantizeFp8({ rows, hidden }, new Float32Array(3))],
  ['scales', () => dequantizeMxfp8({ rows, hidden }, new Uint8Array(4))],
])('refuses wrong %s', (field, call) => {
  expect(call).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field }));
});
