// SPDX-License-Identifier: Apache-2.0
// Random bytes in device memory, which the host may not see.

import { randomFillSync } from 'node:crypto';
import type { DeviceBuffer, Stream } from '@nccl-ext/core';

const chunkBytes = 8 << 20;
/** More than a GPU's caches hold; the rest repeats it, because the host makes random bytes at about 1 GB/s. */
const randomBytes = 128 << 20;

/** Fills a buffer of the stream's rank: random bytes in pieces of host memory, then copies of them. */
export async function uploadRandom(stream: Stream, buffer: DeviceBuffer): Promise<void> {
  const random = Math.min(randomBytes, buffer.bytes);
  const chunk = new Uint8Array(Math.min(chunkBytes, random));
  for (let at = 0; at < random; at += chunk.length) {
    const part = chunk.subarray(0, Math.min(chunk.length, random - at));
    randomFillSync(part);
    stream.upload(buffer, part, at);
    await stream.synchronize();
  }
  for (let at = random; at < buffer.bytes; at += Math.min(at, buffer.bytes - at))
    stream.copy({ buffer, byteOffset: at }, { buffer }, Math.min(at, buffer.bytes - at));
  await stream.synchronize();
}
