// SPDX-License-Identifier: Apache-2.0
// Typed views of device memory that the host can see (embedded backend): any offset, at most 2^32 elements per view.

import { type DType, dtypeBytes } from '../dtype/dtype.js';
import { type TypedArrayOf, typedArrayFor } from '../dtype/typed-array.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe } from '../mesh/require-integer.js';

/** The most elements that a typed array holds on every supported Node.js. */
const maxViewElements: number = 2 ** 32;

/** A typed array over `length` elements of `memory`, `byteOffset` bytes into a buffer of `bytes` bytes. */
export function viewOf<D extends DType>(
  memory: { readonly buffer: ArrayBufferLike; readonly byteOffset: number },
  bytes: number,
  dtype: D,
  byteOffset: number,
  elements?: number,
): TypedArrayOf<D> {
  const size = dtypeBytes(dtype);
  if (!Number.isSafeInteger(byteOffset) || byteOffset < 0 || byteOffset % size !== 0) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `byteOffset of a ${dtype} view must be a multiple of ${size}, not ${describe(byteOffset)}.`,
      {
        field: 'byteOffset',
        seen: byteOffset,
      },
    );
  }
  const length = elements ?? Math.floor((bytes - byteOffset) / size);
  if (!Number.isSafeInteger(length)) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `length of a ${dtype} view must be an integer, not ${describe(length)}.`,
      { field: 'length', seen: length },
    );
  }
  if (length < 0 || byteOffset + length * size > bytes) {
    throw new NcclExtError(
      'ERR_OUT_OF_BOUNDS',
      `A view of ${length} ${dtype} elements at byte ${byteOffset} needs ${byteOffset + length * size} bytes; the buffer has ${bytes}.`,
      { field: 'length', seen: length },
    );
  }
  if (length > maxViewElements) {
    throw new NcclExtError(
      'ERR_VIEW_TOO_LARGE',
      `A typed array holds at most 2^32 elements; ${length} were asked for.`,
      {
        field: 'length',
        expected: maxViewElements,
        seen: length,
        help: 'View the buffer in parts: view(dtype, byteOffset, length).',
      },
    );
  }
  const View = typedArrayFor(dtype);
  return new View(memory.buffer, memory.byteOffset + byteOffset, length) as TypedArrayOf<D>;
}
