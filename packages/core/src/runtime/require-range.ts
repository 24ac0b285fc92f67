// SPDX-License-Identifier: Apache-2.0
// A range of a buffer, checked before any backend: all of them refuse the same ranges in the same words.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireInteger } from '../mesh/require-integer.js';

/** Throws unless `bytes` bytes from `byteOffset` on lie in a buffer of `size` bytes; names are those of the two parameters. */
export function requireRange(
  names: { readonly byteOffset: string; readonly bytes: string },
  byteOffset: unknown,
  bytes: unknown,
  size: number,
): void {
  const start = requireInteger('ERR_INVALID_ARGUMENT', names.byteOffset, byteOffset, 0);
  const count = requireInteger('ERR_INVALID_ARGUMENT', names.bytes, bytes, 0);
  if (start + count <= size) return;
  const field = start > size ? names.byteOffset : names.bytes;
  throw new NcclExtError(
    'ERR_OUT_OF_BOUNDS',
    `${field}: bytes ${start} to ${start + count} lie outside a buffer of ${size} bytes.`,
    { field, expected: size, seen: start + count },
  );
}
