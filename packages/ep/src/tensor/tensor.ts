// SPDX-License-Identifier: Apache-2.0
// A dense, row-major tensor in device memory of one rank, as plain data.

import { type Communicator, type DeviceBuffer, type DType, dtypeBytes, NcclExtError } from '@nccl-ext/core';
import { backendOf, describe, requireArray } from '@nccl-ext/core/extend';

/** Made by {@link tensor} or {@link allocateTensor}, or written as a literal; it owns nothing. */
export interface EpTensor<D extends DType = DType> {
  readonly buffer: DeviceBuffer;
  readonly dtype: D;
  /** Extents; f4e2m1x2 counts bytes of two values. */
  readonly shape: readonly number[];
  readonly byteOffset: number;
}

/**
 * A tensor of this shape at `byteOffset` of `buffer`. Whether it fits is checked where it is used.
 *
 * @example
 * ```ts
 * const tokens = tensor(comm.allocate(4 * 64 * 2), 'bf16', [4, 64]);
 * tensorBytes(tokens); // 512
 * ```
 */
export function tensor<D extends DType>(
  buffer: DeviceBuffer,
  dtype: D,
  shape: readonly number[],
  byteOffset = 0,
): EpTensor<D> {
  return { buffer, dtype, shape, byteOffset };
}

/**
 * A tensor in a buffer of its own, not cleared. Dispose it with `tensor.buffer.dispose()`.
 *
 * @throws ERR_INVALID_ARGUMENT for a wrong shape or dtype, ERR_OUT_OF_MEMORY.
 */
export function allocateTensor<D extends DType>(
  communicator: Communicator,
  dtype: D,
  shape: readonly number[],
): EpTensor<D> {
  backendOf(communicator); // refuses what is no communicator
  requireShape('shape', shape);
  return tensor(communicator.allocate(shape.reduce((a, b) => a * b, dtypeBytes(dtype))), dtype, shape);
}

/** Bytes of a tensor. */
export function tensorBytes({ dtype, shape }: Pick<EpTensor, 'dtype' | 'shape'>): number {
  return shape.reduce((product, extent) => product * extent, dtypeBytes(dtype));
}

/** Throws ERR_INVALID_ARGUMENT unless `shape` is a list of extents. */
export function requireShape(field: string, shape: unknown): asserts shape is readonly number[] {
  requireArray(field, shape);
  for (const [axis, extent] of shape.entries()) {
    if (Number.isSafeInteger(extent) && (extent as number) >= 0) continue;
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `${field}[${axis}] must be a non-negative integer, got ${describe(extent)}.`,
      { field: `${field}[${axis}]`, seen: extent },
    );
  }
}
