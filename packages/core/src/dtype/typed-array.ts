// SPDX-License-Identifier: Apache-2.0
// Which typed array views the elements of a dtype.

import { type DType, dtypeBytes } from './dtype.js';

/**
 * The typed array that views elements of a dtype. Floats without an array of their own are seen as their bit patterns,
 * f16 too where the runtime has Float16Array, so that results do not depend on the runtime. An element of f4e2m1x2 is
 * the byte with two values; an element of bool is a byte, 0 or 1.
 */
export interface TypedArrays {
  f64: Float64Array;
  f32: Float32Array;
  f16: Uint16Array;
  bf16: Uint16Array;
  f8e4m3: Uint8Array;
  f8e5m2: Uint8Array;
  f4e2m1x2: Uint8Array;
  i64: BigInt64Array;
  u64: BigUint64Array;
  i32: Int32Array;
  u32: Uint32Array;
  i16: Int16Array;
  u16: Uint16Array;
  i8: Int8Array;
  u8: Uint8Array;
  bool: Uint8Array;
}

/** The typed array that views elements of `D`; see {@link TypedArrays}. */
export type TypedArrayOf<D extends DType> = TypedArrays[D];

/** What {@link typedArrayFor} returns. */
export interface TypedArrayConstructor<A> {
  readonly BYTES_PER_ELEMENT: number;
  /** An array of `length` zeros. */
  new (length: number): A;
  /** A view; `byteOffset` must be a multiple of the element size. */
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): A;
}

const constructors: { readonly [D in DType]: TypedArrayConstructor<TypedArrayOf<D>> } = {
  f64: Float64Array,
  f32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f8e4m3: Uint8Array,
  f8e5m2: Uint8Array,
  f4e2m1x2: Uint8Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  i32: Int32Array,
  u32: Uint32Array,
  i16: Int16Array,
  u16: Uint16Array,
  i8: Int8Array,
  u8: Uint8Array,
  bool: Uint8Array,
};

/**
 * The constructor of the typed array that views elements of `dtype`.
 *
 * @example
 * ```ts
 * const Elements = typedArrayFor('bf16'); // Uint16Array
 * const bits = new Elements(new ArrayBuffer(8), 0, 4);
 * ```
 */
export function typedArrayFor<D extends DType>(dtype: D): TypedArrayConstructor<TypedArrayOf<D>> {
  dtypeBytes(dtype); // refuses what is no dtype
  return constructors[dtype];
}
