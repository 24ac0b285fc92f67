// SPDX-License-Identifier: Apache-2.0
// The sum of a file that may be larger than memory should hold.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';

/** Lower-case hexadecimal. */
export async function sha256Of(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  const stream = createReadStream(path, { highWaterMark: 1 << 20 });
  for await (const chunk of stream) {
    signal.throwIfAborted();
    hash.update(chunk as Buffer);
  }
  return hash.digest('hex');
}
