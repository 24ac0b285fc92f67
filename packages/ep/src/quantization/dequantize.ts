// SPDX-License-Identifier: Apache-2.0
// Quantised rows back to f32, on the host: what dispatch made of them, times their scales.

import { castArray, dtypeBytes, type FloatDType } from '@nccl-ext/core';
import { requireObject } from '@nccl-ext/core/extend';
import { invalid, requireCount, requireList } from '../config/require-values.js';

export interface QuantizedRows {
  /** Bytes of rows, one after the other. */
  readonly rows: Uint8Array;
  /** Of the rows; default `f8e4m3`. */
  readonly dtype?: Exclude<FloatDType, 'f64'> | undefined;
  /** H: elements of a row. */
  readonly hidden: number;
}

/**
 * Rows of `fp8` and `fp8-pow2` (a scale per 128 elements) or of another block: value x scale, in f32.
 *
 * @param scales f32, one per block of each row.
 * @throws ERR_INVALID_ARGUMENT when lengths do not match.
 * @example
 * ```ts
 * const rows = new Uint8Array(128).fill(0x38); // 1 in f8e4m3
 * dequantizeFp8({ rows, hidden: 128 }, new Float32Array([0.5]))[0]; // 0.5
 * ```
 */
export function dequantizeFp8(input: QuantizedRows, scales: Float32Array, block = 128): Float32Array {
  return scaleBlocks(input, scales, block, (index) => scales[index]!);
}

/**
 * Rows of `mxfp8`: value x 2^(e - 127) with one scale byte e per 32 elements (OCP Microscaling 1.0); e = 255 is NaN.
 *
 * @param scales e8m0, one per block of each row.
 * @throws ERR_INVALID_ARGUMENT when lengths do not match.
 */
export function dequantizeMxfp8(input: QuantizedRows, scales: Uint8Array, block = 32): Float32Array {
  return scaleBlocks(input, scales, block, (index) => {
    const exponent = scales[index]!;
    return exponent === 255 ? Number.NaN : 2 ** (exponent - 127);
  });
}

function scaleBlocks(
  input: QuantizedRows,
  scales: Float32Array | Uint8Array,
  block: number,
  scaleOf: (index: number) => number,
): Float32Array {
  requireObject('input', input);
  const { rows, dtype = 'f8e4m3', hidden } = input;
  requireList('rows', rows);
  requireList('scales', scales);
  requireCount('hidden', hidden, 1);
  requireCount('block', block, 1);
  if (hidden % block !== 0) throw invalid('hidden', `must be a multiple of the block, ${block}`, hidden);
  const rowBytes = hidden * dtypeBytes(dtype);
  if (rows.byteLength % rowBytes !== 0)
    throw invalid('rows', `must have a multiple of ${rowBytes} bytes`, rows.byteLength);
  const values = new Float32Array(rows.byteLength / dtypeBytes(dtype));
  const blocks = values.length / block;
  if (scales.length !== blocks)
    throw invalid('scales', `must have ${blocks} values, one per ${block} elements`, scales.length);
  castArray(dtype, rows, 'f32', new Uint8Array(values.buffer));
  for (let index = 0; index < blocks; index++) {
    const scale = scaleOf(index);
    for (let at = index * block; at < (index + 1) * block; at++) values[at] = values[at]! * scale;
  }
  return values;
}
