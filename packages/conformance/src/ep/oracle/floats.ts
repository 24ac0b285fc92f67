// SPDX-License-Identifier: Apache-2.0
// Rows of narrow floats as f32 numbers and back, by core's conversions, which have tests of their own.

import { castArray, type DType, type FloatDType } from '@nccl-ext/core';

/** The values of the elements. */
export function decodeRow(dtype: FloatDType, bytes: Uint8Array): Float32Array {
  // Through f64, so that f32 rows come out with canonical NaNs too.
  const wide = new Float64Array(bytes.byteLength / elementBytes(dtype));
  castArray(dtype, bytes, 'f64', new Uint8Array(wide.buffer));
  return Float32Array.from(wide);
}

/** Each value rounded once to `dtype`; NaNs become canonical. */
export function encodeRow(dtype: FloatDType, values: ArrayLike<number>): Uint8Array {
  const wide = Float64Array.from(values);
  const bytes = new Uint8Array(wide.length * elementBytes(dtype));
  castArray('f64', new Uint8Array(wide.buffer), dtype, bytes);
  return bytes;
}

/** The values after a rounding to `dtype`. */
export function roundRow(dtype: FloatDType, values: Float32Array): Float32Array {
  return decodeRow(dtype, encodeRow(dtype, values));
}

const bytesOf: Partial<Record<DType, number>> = { f64: 8, f32: 4, f16: 2, bf16: 2, f8e4m3: 1, f8e5m2: 1 };

function elementBytes(dtype: FloatDType): number {
  return bytesOf[dtype]!;
}
