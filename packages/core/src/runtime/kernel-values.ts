// SPDX-License-Identifier: Apache-2.0
// Values for kernels, each with the type that the kernel reads: JavaScript has one kind of number, C has ten.

import { kernelGuardBytes } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe, requireInteger } from '../mesh/require-integer.js';
import { copyBytes } from './host-bytes.js';

/** A parameter as it lies in memory. */
export interface EncodedValue {
  readonly bytes: number;
  /** A power of two. */
  readonly alignment: number;
  write(view: DataView, at: number): void;
}

/** A typed value that a kernel takes, made by {@link param}. */
export class KernelValue {
  readonly #encode: (field: string) => EncodedValue;

  /** @internal Use `param`. */
  constructor(encode: (field: string) => EncodedValue) {
    this.#encode = encode;
  }

  /** @internal Checks the value; `field` names the parameter in errors. */
  encode(field: string): EncodedValue {
    return this.#encode(field);
  }
}

/** The largest alignment of a struct; kernels' own types need at most 16. */
const maxAlignment = 256;

/** A device pointer. */
export function pointer(address: bigint): EncodedValue {
  return { bytes: 8, alignment: 8, write: (view, at) => view.setBigUint64(at, address, true) };
}

function small(
  bytes: 1 | 2 | 4,
  least: number,
  most: number,
  write: (view: DataView, at: number, value: number) => void,
): (value: number) => KernelValue {
  return (value) =>
    new KernelValue((field) => {
      const checked = requireInteger('ERR_INVALID_ARGUMENT', field, value, least, most);
      return { bytes, alignment: bytes, write: (view, at) => write(view, at, checked) };
    });
}

function long(least: bigint, most: bigint): (value: bigint | number) => KernelValue {
  return (value) =>
    new KernelValue((field) => {
      const isInteger = typeof value === 'bigint' || Number.isSafeInteger(value);
      const wide = isInteger ? BigInt(value) : undefined;
      if (wide === undefined || wide < least || wide > most)
        throw wrong(field, `a bigint or a safe integer in ${least}..${most}`, value);
      return pointer(BigInt.asUintN(64, wide));
    });
}

function float(bytes: 4 | 8): (value: number) => KernelValue {
  return (value) =>
    new KernelValue((field) => {
      const fits =
        typeof value === 'number' &&
        (bytes === 8 || !Number.isFinite(value) || Number.isFinite(Math.fround(value)));
      if (!fits) throw wrong(field, bytes === 8 ? 'a number' : 'a number that f32 holds', value);
      const write = (view: DataView, at: number): void =>
        bytes === 8 ? view.setFloat64(at, value, true) : view.setFloat32(at, value, true);
      return { bytes, alignment: bytes, write };
    });
}

function struct(data: ArrayBufferView | ArrayBuffer, alignment: number): KernelValue {
  return new KernelValue((field) => {
    const copy = copyBytes(field, data);
    requireInteger('ERR_INVALID_ARGUMENT', `${field} alignment`, alignment, 1, maxAlignment);
    if ((alignment & (alignment - 1)) !== 0) throw wrong(`${field} alignment`, 'a power of two', alignment);
    // The size of a C struct is a multiple of its alignment; anything else is another struct.
    if (copy.byteLength % alignment !== 0)
      throw wrong(field, `a struct whose size is a multiple of its alignment ${alignment}`, copy.byteLength);
    return {
      bytes: copy.byteLength,
      alignment,
      write: (view, at) => new Uint8Array(view.buffer, view.byteOffset + at, copy.byteLength).set(copy),
    };
  });
}

function wrong(field: string, wanted: string, seen: unknown): NcclExtError {
  return new NcclExtError('ERR_INVALID_ARGUMENT', `${field} must be ${wanted}, got ${describe(seen)}`, {
    field,
    expected: wanted,
    seen,
  });
}

/** The place that the backend fills. */
const guard: KernelValue = new KernelValue(() => ({
  bytes: kernelGuardBytes,
  alignment: 8,
  write: () => {},
}));

/**
 * Values for the parameters of a kernel. They are checked when the kernel is launched, and errors name the parameter.
 *
 * @example
 * ```ts
 * const parameters = [buffer, param.u32(256), param.f32(0.5), param.i64(-1n), param.guard];
 * parameters.length; // 5
 * ```
 */
export const param: {
  readonly u8: (value: number) => KernelValue;
  readonly i8: (value: number) => KernelValue;
  readonly u16: (value: number) => KernelValue;
  readonly i16: (value: number) => KernelValue;
  readonly u32: (value: number) => KernelValue;
  readonly i32: (value: number) => KernelValue;
  readonly u64: (value: bigint | number) => KernelValue;
  readonly i64: (value: bigint | number) => KernelValue;
  readonly f32: (value: number) => KernelValue;
  readonly f64: (value: number) => KernelValue;
  /** A struct by value: its bytes as the kernel reads them, and its alignment (a power of two, at most 256). */
  readonly bytes: (data: ArrayBufferView | ArrayBuffer, alignment: number) => KernelValue;
  /** A `KernelGuard` (kernel.cuh of the CUDA packages): lets the kernel wait with a deadline and report errors. At most one. */
  readonly guard: KernelValue;
} = {
  u8: small(1, 0, 0xff, (view, at, value) => view.setUint8(at, value)),
  i8: small(1, -0x80, 0x7f, (view, at, value) => view.setInt8(at, value)),
  u16: small(2, 0, 0xffff, (view, at, value) => view.setUint16(at, value, true)),
  i16: small(2, -0x8000, 0x7fff, (view, at, value) => view.setInt16(at, value, true)),
  u32: small(4, 0, 0xffff_ffff, (view, at, value) => view.setUint32(at, value, true)),
  i32: small(4, -0x8000_0000, 0x7fff_ffff, (view, at, value) => view.setInt32(at, value, true)),
  u64: long(0n, 2n ** 64n - 1n),
  i64: long(-(2n ** 63n), 2n ** 63n - 1n),
  f32: float(4),
  f64: float(8),
  bytes: struct,
  guard,
};
