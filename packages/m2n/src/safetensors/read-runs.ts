// SPDX-License-Identifier: Apache-2.0
// Reads a slice of a tensor with few system calls: neighbouring small ranges come in one read and are picked from a buffer.

import { type DimRuns, dtypeBytes, NcclExtError } from '@nccl-ext/core';
import type { CheckpointTensor } from './open-checkpoint.js';
import type { ShardFile } from './shard-file.js';
import { type Spans, spansOf } from './spans.js';

/** The most that one slice being read holds beside its target. */
const bounceBytes = 4 * 2 ** 20;

/** A range of this size is read straight into its place; a read costs about as much as copying this much. */
const directBytes = 256 * 2 ** 10;

/** Bytes between two ranges that it is cheaper to read along than to begin another read for. */
const gapBytes = 128 * 2 ** 10;

/** Buffers of {@link bounceBytes} that reads side by side borrow. */
export class BounceBuffers {
  readonly #free: Uint8Array[] = [];

  async use<T>(work: (buffer: Uint8Array) => Promise<T>): Promise<T> {
    const buffer = this.#free.pop() ?? new Uint8Array(bounceBytes);
    try {
      return await work(buffer);
    } finally {
      this.#free.push(buffer);
    }
  }
}

interface ReadRunsInput {
  readonly shard: ShardFile;
  readonly tensor: CheckpointTensor;
  readonly runs: readonly DimRuns[];
  readonly target: Uint8Array;
  readonly bounce: BounceBuffers;
}

/** @throws ERR_INVALID_ARGUMENT when the runs do not fit the tensor or the target does not fit the runs. */
export async function readRuns({ shard, tensor, runs, target, bounce }: ReadRunsInput): Promise<void> {
  requireFit(tensor, runs, target);
  const spans = spansOf(runs, tensor.shape, dtypeBytes(tensor.dtype));
  await bounce.use((buffer) => readSpans(spans, shard, tensor.begin, target, buffer));
}

async function readSpans(
  spans: Spans,
  shard: ShardFile,
  begin: number,
  target: Uint8Array,
  buffer: Uint8Array,
): Promise<void> {
  // The ranges that wait for one read: their offsets in the tensor; `from` is the first byte of that read, `to` its end.
  const waiting: { offset: number; length: number; at: number }[] = [];
  let from = 0;
  let to = 0;
  const flush = async (): Promise<void> => {
    if (waiting.length === 0) return;
    await shard.read(buffer.subarray(0, to - from), begin + from);
    for (const { offset, length, at } of waiting) {
      target.set(buffer.subarray(offset - from, offset - from + length), at);
    }
    waiting.length = 0;
  };
  let at = 0;
  for (const outer of spans.outer) {
    for (let i = 0; i < spans.inner.length; i++) {
      const offset = outer + spans.inner[i]!;
      const length = spans.lengths[i]!;
      const joins =
        waiting.length > 0 &&
        offset >= to &&
        offset - to <= gapBytes &&
        offset + length - from <= buffer.length;
      if (!joins) {
        await flush();
        from = offset;
      }
      if (length >= directBytes && !joins) {
        await shard.read(target.subarray(at, at + length), begin + offset);
      } else {
        waiting.push({ offset, length, at });
        to = offset + length;
      }
      at += length;
    }
  }
  await flush();
}

function requireFit(
  { name, shape, dtype }: CheckpointTensor,
  runs: readonly DimRuns[],
  target: Uint8Array,
): void {
  const fail = (field: string, problem: string): NcclExtError =>
    new NcclExtError('ERR_INVALID_ARGUMENT', `${field}: ${problem} (tensor ${JSON.stringify(name)})`, {
      field,
    });
  if (runs.length !== shape.length) throw fail('runs', `${runs.length} lists for ${shape.length} dimensions`);
  for (const [dim, { runs: list }] of runs.entries()) {
    const end = Math.max(
      0,
      ...list.map(({ start, length, stride, count }) => start + (count - 1) * stride + length),
    );
    if (end > shape[dim]!) throw fail(`runs[${dim}]`, `reach to ${end}, beyond the extent ${shape[dim]}`);
  }
  const bytes = runs.reduce((product, { extent }) => product * extent, dtypeBytes(dtype));
  if (target.length !== bytes) throw fail('target', `has ${target.length} bytes, the slice has ${bytes}`);
}
