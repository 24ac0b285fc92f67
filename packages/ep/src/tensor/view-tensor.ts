// SPDX-License-Identifier: Apache-2.0
// The elements of a tensor as the host sees them, where it can (embedded backend).

import { DeviceBuffer, type DType, NcclExtError, type TypedArrayOf } from '@nccl-ext/core';
import { describe, requireObject } from '@nccl-ext/core/extend';
import { type EpTensor, requireShape } from './tensor.js';

/**
 * A typed array over the tensor's memory itself; f16, bf16 and fp8 come as their bits. Synchronize before reading what a stream writes.
 *
 * @throws ERR_UNSUPPORTED on real hardware, ERR_OUT_OF_BOUNDS, ERR_VIEW_TOO_LARGE above 2^32 elements.
 * @example
 * ```ts
 * const ids = allocateTensor(comm, 'i32', [4, 2]);
 * viewTensor(ids).fill(-1);
 * ```
 */
export function viewTensor<D extends DType>(tensor: EpTensor<D>): TypedArrayOf<D> {
  requireObject('tensor', tensor);
  if (!(tensor.buffer instanceof DeviceBuffer)) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `tensor.buffer must be a buffer, got ${describe(tensor.buffer)}.`,
      {
        field: 'tensor.buffer',
      },
    );
  }
  requireShape('tensor.shape', tensor.shape);
  const elements = tensor.shape.reduce((product, extent) => product * extent, 1);
  return tensor.buffer.view(tensor.dtype, tensor.byteOffset, elements);
}
