// SPDX-License-Identifier: Apache-2.0
// Sizes, offsets and strides on both sides of 2^31 and 2^32 bytes.

import { dtypeBytes, ranges, replicate, shard } from '@nccl-ext/core';
import type { M2nCase, TensorSpec } from './case.js';
import { line, moveCase } from './side.js';

const reports = ['NVIDIA/nccl-extensions#15'];

export const largeCases: readonly M2nCase[] = [
  vector(2 ** 31 - 1, 'u8'),
  vector(2 ** 31, 'bf16'),
  vector(2 ** 32, 'bf16'),
  vector(2 ** 32 + 1, 'u8'),
  large('rows of 2^31 + 2 bytes to halves of rows', 3, {
    shape: [3, 2 ** 30 + 1],
    dtype: 'bf16',
    source: line(1, replicate()),
    destination: line(2, shard(1), 1),
  }),
  large('columns of a 4.3 GB tensor', 4, {
    shape: [65_536, 32_770],
    dtype: 'bf16',
    source: line(2, shard(0)),
    destination: line(2, shard(1), 2),
  }),
  large('strides beyond 2^32 bytes', 3, {
    shape: [2, 33, 2 ** 26 + 8],
    dtype: 'bf16',
    source: line(1, replicate()),
    destination: line(
      2,
      shard(
        1,
        ranges([
          [5, 6],
          [32, 33],
        ]),
      ),
      1,
    ),
  }),
];

function vector(bytes: number, dtype: 'u8' | 'bf16'): M2nCase {
  return large(`${bytes} bytes to one peer`, 2, {
    shape: [bytes / dtypeBytes(dtype)],
    dtype,
    source: line(1, replicate()),
    destination: line(1, replicate(), 1),
  });
}

function large(what: string, ranks: number, tensor: TensorSpec): M2nCase {
  return moveCase('large', what, ranks, [tensor], { reports });
}
