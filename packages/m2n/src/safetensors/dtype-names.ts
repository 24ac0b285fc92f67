// SPDX-License-Identifier: Apache-2.0
// Maps the dtype names of safetensors files to ours. Source: the Dtype enumeration of the format's reference implementation.

import type { DType } from '@nccl-ext/core';

/**
 * The name of each dtype in a safetensors header. F4 counts values in its shape, two to a byte, where f4e2m1x2 counts
 * bytes: the last dimension in the file is twice ours.
 */
export const safetensorsNames: Readonly<Record<DType, string>> = {
  f64: 'F64',
  f32: 'F32',
  f16: 'F16',
  bf16: 'BF16',
  f8e4m3: 'F8_E4M3',
  f8e5m2: 'F8_E5M2',
  f4e2m1x2: 'F4',
  i64: 'I64',
  u64: 'U64',
  i32: 'I32',
  u32: 'U32',
  i16: 'I16',
  u16: 'U16',
  i8: 'I8',
  u8: 'U8',
  bool: 'BOOL',
};

const byName = new Map(Object.entries(safetensorsNames).map(([dtype, name]) => [name, dtype as DType]));

/** The dtype with this name in safetensors headers and model descriptions, or undefined. */
export function dtypeOfSafetensors(name: string): DType | undefined {
  return byName.get(name);
}
