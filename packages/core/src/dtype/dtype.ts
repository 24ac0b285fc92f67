// SPDX-License-Identifier: Apache-2.0
// The element types that tensors can have: names, sizes, kinds and stable codes.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe } from '../mesh/require-integer.js';

/** What is fixed about an element type. */
export interface DTypeTraits {
  /** Bytes of one element. For f4e2m1x2 an element is the byte that packs two values. */
  readonly bytes: 1 | 2 | 4 | 8;
  readonly kind: 'float' | 'int' | 'uint' | 'bool';
  /** Values per element: 2 for packed f4, else 1. */
  readonly packed: 1 | 2;
}

const names = [
  'f64',
  'f32',
  'f16',
  'bf16',
  'f8e4m3',
  'f8e5m2',
  'f4e2m1x2',
  'i64',
  'u64',
  'i32',
  'u32',
  'i16',
  'u16',
  'i8',
  'u8',
  'bool',
] as const;

/** The name of an element type. */
export type DType = (typeof names)[number];

/** All names, in the order of their stable codes. */
export const dtypes: readonly DType[] = names;

/** Size and kind of every element type. */
export const dtypeTraits: Readonly<Record<DType, DTypeTraits>> = {
  f64: { bytes: 8, kind: 'float', packed: 1 },
  f32: { bytes: 4, kind: 'float', packed: 1 },
  f16: { bytes: 2, kind: 'float', packed: 1 },
  bf16: { bytes: 2, kind: 'float', packed: 1 },
  f8e4m3: { bytes: 1, kind: 'float', packed: 1 },
  f8e5m2: { bytes: 1, kind: 'float', packed: 1 },
  f4e2m1x2: { bytes: 1, kind: 'float', packed: 2 },
  i64: { bytes: 8, kind: 'int', packed: 1 },
  u64: { bytes: 8, kind: 'uint', packed: 1 },
  i32: { bytes: 4, kind: 'int', packed: 1 },
  u32: { bytes: 4, kind: 'uint', packed: 1 },
  i16: { bytes: 2, kind: 'int', packed: 1 },
  u16: { bytes: 2, kind: 'uint', packed: 1 },
  i8: { bytes: 1, kind: 'int', packed: 1 },
  u8: { bytes: 1, kind: 'uint', packed: 1 },
  bool: { bytes: 1, kind: 'bool', packed: 1 },
};

/** The element types that convert into each other; packed f4e2m1x2 has `packF4` and `unpackF4` instead. */
export type FloatDType = 'f64' | 'f32' | 'f16' | 'bf16' | 'f8e4m3' | 'f8e5m2';

/**
 * Bytes of one element; for f4e2m1x2 the byte that packs two values.
 *
 * @throws ERR_INVALID_ARGUMENT for what is no dtype, as do all functions that take one.
 */
export function dtypeBytes(dtype: DType): number {
  return traitsOf(dtype).bytes;
}

function traitsOf(dtype: DType): DTypeTraits {
  if (isDType(dtype)) return dtypeTraits[dtype];
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `dtype must be one of ${dtypes.join(' ')}, got ${describe(dtype)}`,
    { field: 'dtype', expected: dtypes, seen: dtype },
  );
}

/** The stable number of a dtype in shared records and native code. */
export function dtypeCode(dtype: DType): number {
  return dtypes.indexOf(dtype);
}

/** Whether `value` names an element type. */
export function isDType(value: unknown): value is DType {
  return typeof value === 'string' && Object.hasOwn(dtypeTraits, value);
}

/** Whether the elements are single floats, which `castArray` converts. */
export function isFloatDType(dtype: DType): dtype is FloatDType {
  const { kind, packed } = traitsOf(dtype);
  return kind === 'float' && packed === 1;
}

/** Throws ERR_INVALID_ARGUMENT unless `dtype` is a {@link FloatDType}. */
export function requireFloatDType(dtype: unknown, field: string): void {
  if (isDType(dtype) && isFloatDType(dtype)) return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${field} must be one of f64 f32 f16 bf16 f8e4m3 f8e5m2, got ${describe(dtype)}`,
    { field, seen: dtype },
  );
}
