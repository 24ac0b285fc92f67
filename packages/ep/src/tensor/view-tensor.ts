// SPDX-License-Identifier: Apache-2.0
// The elements of a tensor as the host sees them, where it can (embedded backend).

import type { DType, TypedArrayOf } from '@nccl-ext/core';
import type { EpTensor } from './tensor.js';

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
  const elements = tensor.shape.reduce((product, extent) => product * extent, 1);
  return tensor.buffer.view(tensor.dtype, tensor.byteOffset, elements);
}
