// SPDX-License-Identifier: Apache-2.0
// How an error record crosses threads: as JSON text in shared memory, where nothing needs to be allocated or posted.

import type { ErrorRecord } from '../../contract/index.js';
import { textBytes } from './world-layout.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Writes a record at byte `offset` of a buffer and returns its length; a detail that is too long is cut. */
export function writeErrorText(buffer: SharedArrayBuffer, offset: number, record: ErrorRecord): number {
  let bytes = encode(record);
  for (let room = record.detail.length; bytes.length > textBytes && room > 0; ) {
    room = Math.max(0, room - (bytes.length - textBytes) - 8);
    bytes = encode({ ...record, detail: `${record.detail.slice(0, room)}...` });
  }
  // The target is shared memory, so encodeInto cannot be used.
  new Uint8Array(buffer, offset, textBytes).set(bytes.subarray(0, textBytes));
  return Math.min(bytes.length, textBytes);
}

/** Reads what `writeErrorText` wrote. */
export function readErrorText(buffer: SharedArrayBuffer, offset: number, length: number): ErrorRecord {
  const text = decoder.decode(new Uint8Array(buffer, offset, length).slice());
  const record = JSON.parse(text);
  return { ...record, expected: revive(record.expected), seen: revive(record.seen) };
}

function encode(record: ErrorRecord): Uint8Array {
  return encoder.encode(
    JSON.stringify(record, (_key, value) => (typeof value === 'bigint' ? { bigint: String(value) } : value)),
  );
}

function revive(value: number | string | { bigint: string }): number | bigint | string {
  return typeof value === 'object' ? BigInt(value.bigint) : value;
}
