// SPDX-License-Identifier: Apache-2.0
// Random bytes in device memory, which the host may not see.

import { randomFillSync } from 'node:crypto';
import type { DeviceBuffer, Stream } from '@nccl-ext/core';

const chunkBytes = 8 << 20;

/** Fills a buffer of the stream's rank, in pieces of host memory. */
export async function uploadRandom(stream: Stream, buffer: DeviceBuffer): Promise<void> {
  const chunk = new Uint8Array(Math.min(chunkBytes, buffer.bytes));
  for (let at = 0; at < buffer.bytes; at += chunk.length) {
    const part = chunk.subarray(0, Math.min(chunk.length, buffer.bytes - at));
    randomFillSync(part);
    stream.upload(buffer, part, at);
    await stream.synchronize();
  }
}
