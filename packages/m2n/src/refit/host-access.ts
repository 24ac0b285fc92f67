// SPDX-License-Identifier: Apache-2.0
// How the host reads and writes device memory: in place where it sees the memory, elsewhere through a copy.

import type { DeviceBuffer, Stream } from '@nccl-ext/core';
import { backendOf } from '@nccl-ext/core/extend';

/** Reads and writes memory of one rank; one call at a time. */
export interface HostAccess {
  /** `fill` gets the bytes from `byteOffset` on to write; `whole` says that it writes all of them, so that nobody fetches the old ones. */
  write(
    buffer: DeviceBuffer,
    range: ByteRange,
    whole: boolean,
    fill: (target: Uint8Array) => Promise<void>,
  ): Promise<void>;
  /** The bytes as they are; good until the next call. */
  read(buffer: DeviceBuffer, range: ByteRange): Promise<Uint8Array>;
}

export interface ByteRange {
  readonly byteOffset: number;
  readonly bytes: number;
}

/** Access to the memory of the stream's rank; copies go through the stream. */
export function hostAccess(stream: Stream): HostAccess {
  return backendOf(stream.communicator).info.name === 'embedded' ? inPlace : new CopiedBytes(stream);
}

const inPlace: HostAccess = {
  write: (buffer, { byteOffset, bytes }, _, fill) => fill(buffer.view('u8', byteOffset, bytes)),
  read: (buffer, { byteOffset, bytes }) => Promise.resolve(buffer.view('u8', byteOffset, bytes)),
};

/** Through one piece of host memory, as large as the largest range so far. */
class CopiedBytes implements HostAccess {
  readonly #stream: Stream;
  #memory = new Uint8Array(0);

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  async write(
    buffer: DeviceBuffer,
    range: ByteRange,
    whole: boolean,
    fill: (target: Uint8Array) => Promise<void>,
  ): Promise<void> {
    const target = whole ? this.#room(range.bytes) : await this.read(buffer, range);
    await fill(target);
    this.#stream.upload(buffer, target, range.byteOffset);
    await this.#stream.synchronize();
  }

  async read(buffer: DeviceBuffer, { byteOffset, bytes }: ByteRange): Promise<Uint8Array> {
    const target = this.#room(bytes);
    this.#stream.download(target, buffer, byteOffset);
    await this.#stream.synchronize();
    return target;
  }

  #room(bytes: number): Uint8Array {
    if (this.#memory.length < bytes) this.#memory = new Uint8Array(bytes);
    return this.#memory.subarray(0, bytes);
  }
}
