// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { dtypeBytes, dtypeCode, dtypes, isDType, isFloatDType } from './dtype.js';

describe('dtypes', () => {
  it('have the sizes and codes that native code and records rely on', () => {
    expect(dtypes.map((dtype) => [dtype, dtypeBytes(dtype), dtypeCode(dtype)])).toEqual([
      ['f64', 8, 0],
      ['f32', 4, 1],
      ['f16', 2, 2],
      ['bf16', 2, 3],
      ['f8e4m3', 1, 4],
      ['f8e5m2', 1, 5],
      ['f4e2m1x2', 1, 6],
      ['i64', 8, 7],
      ['u64', 8, 8],
      ['i32', 4, 9],
      ['u32', 4, 10],
      ['i16', 2, 11],
      ['u16', 2, 12],
      ['i8', 1, 13],
      ['u8', 1, 14],
      ['bool', 1, 15],
    ]);
  });

  it('are told from other values', () => {
    expect(dtypes.every(isDType)).toBe(true);
    for (const value of ['float', 'toString', '', 3, null, undefined]) expect(isDType(value)).toBe(false);
  });

  it('say which are single floats', () => {
    expect(dtypes.filter(isFloatDType)).toEqual(['f64', 'f32', 'f16', 'bf16', 'f8e4m3', 'f8e5m2']);
  });
});
