// SPDX-License-Identifier: Apache-2.0
// Host memory that callers pass, as bytes; what is no memory, or was given to another thread, is named.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe } from '../mesh/require-integer.js';

/** The bytes of a typed array or DataView, without copying them. */
export function hostBytes(field: string, host: unknown): Uint8Array {
  if (!ArrayBuffer.isView(host)) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `${field} must be a typed array or a DataView, got ${describe(host)}.`,
      { field },
    );
  }
  try {
    return new Uint8Array(host.buffer, host.byteOffset, host.byteLength);
  } catch (cause) {
    // Transferred to another thread, which nothing on the view tells on every supported Node.js.
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `${field} is detached: its memory belongs to another thread.`,
      { field, cause },
    );
  }
}

/** A copy of the bytes of a typed array, DataView or ArrayBuffer, at least one. */
export function copyBytes(field: string, host: unknown): Uint8Array {
  const isBuffer = host instanceof ArrayBuffer || host instanceof SharedArrayBuffer;
  // A detached ArrayBuffer has no bytes and would refuse the view.
  const bytes =
    isBuffer && host.byteLength > 0 ? new Uint8Array(host) : isBuffer ? noBytes : hostBytes(field, host);
  if (bytes.byteLength > 0) return bytes.slice();
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${field} is empty, or its memory belongs to another thread.`,
    {
      field,
    },
  );
}

const noBytes = new Uint8Array(0);
