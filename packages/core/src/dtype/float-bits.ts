// SPDX-License-Identifier: Apache-2.0
// Bits of one float value and back, for tests, messages and small tables; arrays go through castArray.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe } from '../mesh/require-integer.js';
import { dtypeTraits, type FloatDType, requireFloatDType } from './dtype.js';
import { f32NaN, narrowBits, narrowFormats, oddBits, widenBits } from './float-format.js';

const f64NaN = 0x7fffffffffffffffn;
const view = new DataView(new ArrayBuffer(8));

/**
 * The bits of `value` in `dtype`, rounded once to nearest even: an unsigned number, for f64 a bigint.
 * NaN is canonical and fp8 saturates, by the rules of float-format.ts.
 *
 * @example
 * ```ts
 * encodeFloat('bf16', 1.5); // 0x3fc0
 * encodeFloat('f8e4m3', 1000); // 0x7e, which is 448
 * encodeFloat('f64', 1); // 0x3ff0000000000000n
 * ```
 */
export function encodeFloat(dtype: 'f64', value: number): bigint;
export function encodeFloat(dtype: Exclude<FloatDType, 'f64'>, value: number): number;
export function encodeFloat(dtype: FloatDType, value: number): number | bigint;
export function encodeFloat(dtype: FloatDType, value: number): number | bigint {
  requireFloatDType(dtype, 'dtype');
  if (typeof value !== 'number') {
    throw new NcclExtError('ERR_INVALID_ARGUMENT', `value must be a number, got ${describe(value)}`, {
      field: 'value',
    });
  }
  if (dtype === 'f32') {
    view.setFloat32(0, value);
    return Number.isNaN(value) ? f32NaN : view.getUint32(0);
  }
  view.setFloat64(0, value);
  if (dtype === 'f64') return Number.isNaN(value) ? f64NaN : view.getBigUint64(0);
  return narrowBits(oddBits(view.getInt32(0), view.getInt32(4)), narrowFormats[dtype]);
}

/**
 * The value that `bits` stand for in `dtype`, exactly. f64 takes a bigint, the others a number.
 *
 * @throws {NcclExtError} ERR_INVALID_ARGUMENT if `bits` is no unsigned integer of the dtype's width.
 *
 * @example
 * ```ts
 * decodeFloat('f8e4m3', 0x7e); // 448
 * decodeFloat('f64', 0x3ff0000000000000n); // 1
 * ```
 */
export function decodeFloat(dtype: 'f64', bits: bigint): number;
export function decodeFloat(dtype: Exclude<FloatDType, 'f64'>, bits: number): number;
export function decodeFloat(dtype: FloatDType, bits: number | bigint): number;
export function decodeFloat(dtype: FloatDType, bits: number | bigint): number {
  requireFloatDType(dtype, 'dtype');
  if (dtype === 'f64') {
    if (typeof bits !== 'bigint' || BigInt.asUintN(64, bits) !== bits) throw wrongBits(dtype, bits);
    view.setBigUint64(0, bits);
    return view.getFloat64(0);
  }
  const limit = 2 ** (8 * dtypeTraits[dtype].bytes);
  if (typeof bits !== 'number' || !Number.isInteger(bits) || bits < 0 || bits >= limit) {
    throw wrongBits(dtype, bits);
  }
  view.setUint32(0, dtype === 'f32' ? bits : widenBits(bits, narrowFormats[dtype]));
  return view.getFloat32(0);
}

function wrongBits(dtype: FloatDType, seen: unknown): NcclExtError {
  const digits = 2 * dtypeTraits[dtype].bytes;
  const expected = `0 to 0x${'f'.repeat(digits)}${dtype === 'f64' ? 'n, a bigint' : ', a number'}`;
  return new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `bits is ${describe(seen)}; ${dtype} takes an integer from ${expected}`,
    { field: 'bits', expected, seen },
  );
}
