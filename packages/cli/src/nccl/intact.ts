// SPDX-License-Identifier: Apache-2.0
// Is the library in this folder whole? The wheel's own list of files, which is kept beside it, has its sum.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { NcclPin } from './pins.js';
import { libraryOf, wheelFactsOf } from './places.js';
import { sha256Of } from './sha256.js';

/** True when the library is there and is that of the wheel; folders of third_party/fetch keep the same list. */
export async function isIntact(folder: string, pin: NcclPin, signal: AbortSignal): Promise<boolean> {
  try {
    const record = await readFile(join(wheelFactsOf(folder, pin), 'RECORD'), 'utf8');
    // A line is path,sha256=sum,bytes with the sum as unpadded base64url (PyPA, "Recording installed projects").
    const sum = /^nvidia\/nccl\/lib\/libnccl\.so\.2,sha256=([\w-]+)=*,/m.exec(record)?.[1];
    if (sum === undefined) return false;
    const wanted = Buffer.from(sum, 'base64url').toString('hex');
    return (await sha256Of(libraryOf(folder), signal)) === wanted;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}
