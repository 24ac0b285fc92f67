// SPDX-License-Identifier: Apache-2.0
// A tensor with canaries on both sides, poisoned as a whole before it is written, compared as a whole after.

import type { Communicator, DType, Stream } from '@nccl-ext/core';
import { dtypeBytes } from '@nccl-ext/core';
import { type EpTensor, tensor } from '@nccl-ext/ep';

/** Bytes on each side: keeps rows at multiples of 16. */
const canaryBytes = 64;

/** Owns its memory. */
export class GuardedTensor {
  readonly tensor: EpTensor;
  readonly name: string;
  readonly bytes: number;
  readonly #guard: number;

  constructor(
    communicator: Communicator,
    name: string,
    dtype: DType,
    shape: readonly number[],
    guard: number,
  ) {
    this.name = name;
    this.bytes = shape.reduce((product, extent) => product * extent, dtypeBytes(dtype));
    const buffer = communicator.allocate(this.bytes + 2 * canaryBytes);
    this.tensor = tensor(buffer, dtype, shape, canaryBytes);
    this.#guard = guard;
  }

  /** Poisons canaries and content; `content` then goes over it. Neither may change until the stream has passed. */
  enqueueFill(stream: Stream, content?: Uint8Array): void {
    const { buffer, byteOffset } = this.tensor;
    stream.fill(buffer, this.#guard);
    if (content !== undefined && content.byteLength > 0) stream.upload(buffer, content, byteOffset);
  }

  /** An image of the content as it is before anything is written. */
  image(): Uint8Array {
    return new Uint8Array(this.bytes).fill(this.#guard);
  }

  /** The memory, canaries included, once the stream has passed. */
  enqueueRead(stream: Stream): Uint8Array {
    const bytes = new Uint8Array(this.bytes + 2 * canaryBytes);
    stream.download(bytes, this.tensor.buffer);
    return bytes;
  }

  /** What is not as `expected`, as a sentence, or undefined. */
  difference(read: Uint8Array, expected: Uint8Array): string | undefined {
    const end = canaryBytes + this.bytes;
    for (let at = 0; at < read.length; at++) {
      const inside = at >= canaryBytes && at < end;
      const wanted = inside ? expected[at - canaryBytes]! : this.#guard;
      if (read[at] === wanted) continue;
      const where = inside ? this.#where(at - canaryBytes) : `${at < end ? 'before' : 'behind'} the tensor`;
      return `${this.name} ${where} is 0x${hex(read[at]!)}, not 0x${hex(wanted)}`;
    }
    return undefined;
  }

  dispose(): Promise<void> {
    return this.tensor.buffer.dispose();
  }

  #where(at: number): string {
    const { shape, dtype } = this.tensor;
    const element = Math.floor(at / dtypeBytes(dtype));
    const index: number[] = [];
    let rest = element;
    for (const extent of shape.toReversed()) {
      index.unshift(rest % extent);
      rest = Math.floor(rest / extent);
    }
    return `[${index.join(', ')}], byte ${at % dtypeBytes(dtype)},`;
  }
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0');
}
