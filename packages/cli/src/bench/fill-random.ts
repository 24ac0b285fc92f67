// SPDX-License-Identifier: Apache-2.0
// Random inputs, so that nothing profits from zeros or repetition.

import { randomFillSync } from 'node:crypto';

const chunkBytes = 4 << 20;

/** Fills `bytes` bytes; `view` gives a range of them. The memory may be shared, which the generator itself does not take. */
export function fillRandom(view: (at: number, length: number) => Uint8Array, bytes: number): void {
  const chunk = new Uint8Array(Math.min(chunkBytes, bytes));
  for (let at = 0; at < bytes; at += chunk.length) {
    const length = Math.min(chunk.length, bytes - at);
    randomFillSync(chunk, 0, length);
    view(at, length).set(chunk.subarray(0, length));
  }
}
