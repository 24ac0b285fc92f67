// SPDX-License-Identifier: Apache-2.0
// Batches and buffers of a test on the device, and back as numbers.

import { type Communicator, type DType, fromFloat64, type NumberDType, toFloat64 } from '@nccl-ext/core';
import type { EpDType } from '../config/ep-config.js';
import { allocateTensor, type EpTensor, tensorBytes } from '../tensor/tensor.js';
import { viewTensor } from '../tensor/view-tensor.js';
import type { Batch } from './batches.test-util.js';

/** A tensor with these values. */
export function place<D extends NumberDType>(
  comm: Communicator,
  dtype: D,
  shape: readonly number[],
  values: readonly number[],
): EpTensor<D> {
  const made = allocateTensor(comm, dtype, shape);
  bytesOf(made).set(fromFloat64(dtype, values));
  return made;
}

/** A tensor of which every byte is `poison`. */
export function poisoned<D extends DType>(
  comm: Communicator,
  dtype: D,
  shape: readonly number[],
  poison = 0xaa,
): EpTensor<D> {
  const made = allocateTensor(comm, dtype, shape);
  bytesOf(made).fill(poison);
  return made;
}

export function valuesOf(tensor: EpTensor): number[] {
  if (tensor.dtype === 'i64') return Array.from(viewTensor(tensor as EpTensor<'i64'>), Number);
  return [...toFloat64(tensor.dtype as NumberDType, bytesOf(tensor))];
}

export function bytesOf(tensor: EpTensor): Uint8Array {
  return tensor.buffer.view('u8', tensor.byteOffset, tensorBytes(tensor));
}

/** Sets row number `at` to `valueAt(h)`. */
export function writeRow(tensor: EpTensor, at: number, valueAt: (h: number) => number): void {
  const row = fromFloat64(
    tensor.dtype as NumberDType,
    Array.from({ length: tensor.shape.at(-1)! }, (_, h) => valueAt(h)),
  );
  bytesOf(tensor).set(row, at * row.length);
}

/** Ids, weights and tokens of one rank. */
export function upload(comm: Communicator, dtype: EpDType, topK: number, hidden: number, batch: Batch) {
  const size = batch.ids.length;
  return {
    topkIdx: place(comm, 'i32', [size, topK], batch.ids.flat()),
    weights: place(comm, 'f32', [size, topK], batch.weights.flat()),
    tokens: place(comm, dtype, [size, hidden], batch.tokens.flat()),
  };
}
