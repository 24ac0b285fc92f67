// SPDX-License-Identifier: Apache-2.0
// What callers say about memory and streams that nccl-ext did not make, checked before a driver sees it: a wrong address is a fault there.

import type { MemoryShare } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireObject } from '../errors/require-kind.js';
import { describe, requireInteger } from '../mesh/require-integer.js';

/** Bytes of a CUDA IPC handle. */
const ipcHandleBytes = 64;
const addressSpace = 2n ** 64n;
// 0 is the default stream, 1 the legacy one, 2 that of the calling thread (CUstream_per_thread).
const lastDefaultStream = 2n;

/** A device address of which `bytes` bytes may be used. */
export function requireAddress(field: string, address: unknown, bytes: number): bigint {
  if (typeof address === 'bigint' && address > 0n && address + BigInt(bytes) <= addressSpace) return address;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${field} must be a device address, a bigint that is not 0 with ${bytes} bytes below 2^64 behind it, not ${describe(address)}.`,
    { field, seen: address },
  );
}

/** A stream of the driver that is none of its default streams. */
export function requireStream(field: string, stream: unknown): bigint {
  if (typeof stream === 'bigint' && stream > lastDefaultStream && stream < addressSpace) return stream;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${field} must be a stream of the driver as a bigint, and no default stream, not ${describe(stream)}.`,
    {
      field,
      seen: stream,
      help: 'Default streams wait for other streams, which may be those of peers. Make one with cudaStreamCreateWithFlags(cudaStreamNonBlocking).',
    },
  );
}

/** A share as `buffer.share()` of another process made it; the copy has nothing else in it. */
export function requireShare(share: unknown): MemoryShare {
  requireObject('share', share);
  const given = share as Record<keyof (MemoryShare & { kind: 'fd' }) | 'handle', unknown>;
  const integer = (name: keyof typeof given, least: number, most?: number): number =>
    requireInteger('ERR_INVALID_ARGUMENT', `share.${name}`, given[name], least, most);
  const range = { byteOffset: integer('byteOffset', 0), bytes: integer('bytes', 1) };
  if (given.kind === 'ipc') {
    const { handle } = given;
    if (handle instanceof Uint8Array && handle.byteLength === ipcHandleBytes)
      return { kind: 'ipc', handle: handle.slice(), ...range };
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `share.handle must be a Uint8Array of ${ipcHandleBytes} bytes, not ${
        handle instanceof Uint8Array ? `one of ${handle.byteLength}` : describe(handle)
      }.`,
      {
        field: 'share.handle',
        expected: ipcHandleBytes,
        help: 'JSON loses typed arrays: send base64 and decode it.',
      },
    );
  }
  if (given.kind === 'fd') {
    const allocationBytes = integer('allocationBytes', 1);
    requireInside(range, allocationBytes);
    return {
      kind: 'fd',
      fd: integer('fd', 0, 0x7fff_ffff),
      ...(given.processId === undefined ? {} : { processId: integer('processId', 1, 0x7fff_ffff) }),
      allocationBytes,
      ...range,
    };
  }
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `share.kind must be 'ipc' or 'fd', not ${describe(given.kind)}.`,
    { field: 'share.kind', seen: given.kind },
  );
}

function requireInside(
  { byteOffset, bytes }: { readonly byteOffset: number; readonly bytes: number },
  allocationBytes: number,
): void {
  if (byteOffset + bytes <= allocationBytes) return;
  throw new NcclExtError(
    'ERR_OUT_OF_BOUNDS',
    `share.bytes: bytes ${byteOffset} to ${byteOffset + bytes} lie outside an allocation of ${allocationBytes} bytes.`,
    { field: 'share.bytes', expected: allocationBytes, seen: byteOffset + bytes },
  );
}
