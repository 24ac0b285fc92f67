// SPDX-License-Identifier: Apache-2.0
// Only the wheel that this release was tested with is unpacked.

import { NcclExtError } from '@nccl-ext/core';
import type { NcclPin } from './pins.js';
import { sha256Of } from './sha256.js';

/** A file whose sum is another than the pin's is refused; `fromUser`: it was named on the command line. */
export async function checkWheel(
  path: string,
  pin: NcclPin,
  fromUser: boolean,
  signal: AbortSignal,
): Promise<void> {
  const seen = await sha256Of(path, signal);
  if (seen === pin.sha256) return;
  const name = fromUser ? `--file ${path}` : `The ${pin.name} ${pin.version} that pip brought`;
  const message = `${name} has sha256 ${seen}; the pinned wheel has ${pin.sha256}.`;
  const sums = { expected: pin.sha256, seen };
  throw fromUser
    ? new NcclExtError('ERR_INVALID_ARGUMENT', message, {
        ...sums,
        help: `Give ${pin.file} as NVIDIA published it, or --cuda ${pin.cuda === 12 ? 13 : 12} for the other build.`,
        field: '--file',
      })
    : new NcclExtError('ERR_VERIFY', message, {
        ...sums,
        help: `The index has another file under this name, or a proxy changed it.\nName another index with --index-url URL, or bring ${pin.file} yourself and add --file.`,
      });
}
