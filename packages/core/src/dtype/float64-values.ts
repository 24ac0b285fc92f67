// SPDX-License-Identifier: Apache-2.0
// Element bytes as plain JavaScript numbers and back, for examples, tests and messages.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe } from '../mesh/require-integer.js';
import { elementCount } from './byte-arrays.js';
import { castArray } from './cast-array.js';
import { type DType, dtypeBytes, isFloatDType } from './dtype.js';
import { packF4, unpackF4 } from './f4.js';
import { typedArrayFor } from './typed-array.js';

/** The dtypes of which every value is a double: all but the 64-bit integers. */
export type NumberDType = Exclude<DType, 'i64' | 'u64'>;

/**
 * The values of the elements in `bytes`, exactly; f4e2m1x2 gives two per byte, bool gives its bytes.
 *
 * @throws {NcclExtError} ERR_INVALID_ARGUMENT if the last element is cut, ERR_CAST for i64 and u64.
 *
 * @example
 * ```ts
 * toFloat64('bf16', new Uint8Array([0xc0, 0x3f])); // Float64Array [1.5]
 * ```
 */
export function toFloat64(dtype: NumberDType, bytes: Uint8Array): Float64Array {
  refuse64(dtype);
  const count = elementCount(dtype, bytes, 'bytes');
  const values = new Float64Array(dtype === 'f4e2m1x2' ? 2 * count : count);
  const out = new Uint8Array(values.buffer);
  if (dtype === 'f4e2m1x2') unpackF4(bytes, 'f64', out);
  else if (isFloatDType(dtype)) castArray(dtype, bytes, 'f64', out);
  else {
    const elements = new (typedArrayFor(dtype))(count);
    new Uint8Array(elements.buffer).set(bytes);
    values.set(elements);
  }
  return values;
}

/**
 * The bytes of elements with these values. Floats are rounded once, to nearest even; the values of an integer dtype
 * must be integers in its range, those of bool 0 or 1.
 *
 * @throws {NcclExtError} ERR_INVALID_ARGUMENT if a value is not allowed or f4e2m1x2 is given an odd number of them,
 *   ERR_CAST for i64 and u64.
 *
 * @example
 * ```ts
 * fromFloat64('bf16', [1.5]); // Uint8Array [0xc0, 0x3f]
 * ```
 */
export function fromFloat64(dtype: NumberDType, values: ArrayLike<number>): Uint8Array {
  refuse64(dtype);
  const doubles = doublesOf(values);
  const source = new Uint8Array(doubles.buffer);
  if (dtype === 'f4e2m1x2') {
    const packed = new Uint8Array(Math.floor(doubles.length / 2));
    packF4('f64', source, packed);
    return packed;
  }
  if (isFloatDType(dtype)) {
    const bytes = new Uint8Array(doubles.length * dtypeBytes(dtype));
    castArray('f64', source, dtype, bytes);
    return bytes;
  }
  const elements = new (typedArrayFor(dtype))(doubles.length);
  for (const [i, value] of doubles.entries()) {
    elements[i] = value;
    if (elements[i] !== value || (dtype === 'bool' && value > 1)) throw wrongValue(dtype, i, value);
  }
  return new Uint8Array(elements.buffer);
}

// Float64Array.from takes anything and makes null 0 and text NaN.
function doublesOf(values: ArrayLike<number>): Float64Array {
  if (values instanceof Float64Array || values instanceof Float32Array) return Float64Array.from(values);
  if (!Array.isArray(values) && !ArrayBuffer.isView(values)) {
    throw new NcclExtError('ERR_INVALID_ARGUMENT', `values must be an array, got ${describe(values)}`, {
      field: 'values',
    });
  }
  for (let i = 0; i < values.length; i++) {
    if (typeof values[i] === 'number') continue;
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `values[${i}] must be a number, got ${describe(values[i])}`,
      { field: `values[${i}]` },
    );
  }
  return Float64Array.from(values);
}

function refuse64(dtype: DType): void {
  if (dtype !== 'i64' && dtype !== 'u64') return;
  throw new NcclExtError('ERR_CAST', `dtype is ${dtype}, whose values a double cannot always hold`, {
    field: 'dtype',
    help: `Use new (typedArrayFor('${dtype}'))(buffer), whose elements are bigints.`,
  });
}

function wrongValue(dtype: DType, index: number, value: number): NcclExtError {
  const allowed = dtype === 'bool' ? '0 or 1' : `an integer in the range of ${dtype}`;
  return new NcclExtError('ERR_INVALID_ARGUMENT', `values[${index}] is ${value}; ${allowed} is needed`, {
    field: `values[${index}]`,
    expected: allowed,
    seen: value,
  });
}
