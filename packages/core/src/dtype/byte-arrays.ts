// SPDX-License-Identifier: Apache-2.0
// What the conversions of this folder ask of the byte arrays they are given: whole elements, equal counts, no overlap.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe } from '../mesh/require-integer.js';
import { type DType, dtypeBytes } from './dtype.js';

/** The number of elements that `bytes` holds; ERR_INVALID_ARGUMENT if the last one is cut. */
export function elementCount(dtype: DType, bytes: Uint8Array, field: string): number {
  const size = dtypeBytes(dtype);
  requireByteArray(bytes, field);
  if (bytes.byteLength % size === 0) return bytes.byteLength / size;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${field} has ${bytes.byteLength} bytes, which is not a multiple of ${size}, the size of a ${dtype} element`,
    { field, expected: `a multiple of ${size}`, seen: bytes.byteLength },
  );
}

/** Throws ERR_INVALID_ARGUMENT unless `bytes` has exactly `expected` bytes. */
export function requireBytes(bytes: Uint8Array, expected: number, field: string): void {
  requireByteArray(bytes, field);
  const seen = bytes.byteLength;
  if (seen === expected) return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${field} has ${seen} bytes, but the elements of source take ${expected} there`,
    { field, expected, seen },
  );
}

/** Throws ERR_INVALID_ARGUMENT unless `bytes` is a Uint8Array: any other typed array would be read as numbers, not as bytes. */
export function requireByteArray(bytes: unknown, field: string): void {
  if (bytes instanceof Uint8Array) return;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `${field} must be a Uint8Array, got ${describe(bytes)}`, {
    field,
    help: 'Bytes of another typed array: new Uint8Array(array.buffer, array.byteOffset, array.byteLength).',
  });
}

/**
 * `source`, or a copy of it if writing `destination` could change it. Two SharedArrayBuffer objects over the same
 * memory (one of them received by message) cannot be told from two memories, so overlap is seen within one object only.
 */
export function apartFrom(destination: Uint8Array, source: Uint8Array): Uint8Array {
  const overlap =
    source.buffer === destination.buffer &&
    source.byteOffset < destination.byteOffset + destination.byteLength &&
    destination.byteOffset < source.byteOffset + source.byteLength;
  return overlap ? source.slice() : source;
}
