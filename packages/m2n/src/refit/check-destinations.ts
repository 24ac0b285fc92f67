// SPDX-License-Identifier: Apache-2.0
// Compares what arrived on a rank with slices read from the values again, cast independently: no planner, no moves.

import { castArray, type DType, dtypeBytes, NcclExtError } from '@nccl-ext/core';
import type { HostAccess } from './host-access.js';
import { denseRows, type PartPiece, partPieces, pieceRange } from './part-pieces.js';
import type { StorageArena } from './storage-arena.js';
import type { ValueSource } from './values.js';

/**
 * Compares every destination byte of one rank.
 *
 * @throws ERR_VERIFY naming rank, tensor, storage and the first element that differs.
 */
export async function checkDestinations(
  rank: number,
  arena: Pick<StorageArena, 'held' | 'bindings'>,
  access: HostAccess,
  values: ValueSource,
  sourceDType: (tensor: number) => DType,
  onBytes: (bytes: number) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const { tensor, name, storage, dtype, parts } of arena.held) {
    const { buffer, byteOffset: base = 0 } = arena.bindings[storage]!;
    for (const part of parts) {
      for (const piece of partPieces(part, dtype)) {
        signal?.throwIfAborted();
        const expected = await expectedBytes(name, piece, values, sourceDType(tensor), dtype);
        const all = await access.read(buffer, pieceRange(piece, dtype, base));
        let at = 0;
        for (const row of denseRows(piece, dtype)) {
          const first = row.byteOffset - piece.byteOffset;
          const seen = all.subarray(first, first + row.bytes);
          const wanted = expected.subarray(at, at + row.bytes);
          if (Buffer.compare(seen, wanted) !== 0)
            throw difference(rank, name, storage, dtype, at, wanted, seen);
          at += row.bytes;
        }
        onBytes(expected.length);
      }
    }
  }
}

async function expectedBytes(
  name: string,
  piece: PartPiece,
  values: ValueSource,
  from: DType,
  to: DType,
): Promise<Uint8Array> {
  const read = new Uint8Array(piece.elements * dtypeBytes(from));
  await values.read(name, piece.dims, read);
  if (from === to) return read;
  const cast = new Uint8Array(piece.elements * dtypeBytes(to));
  castArray(from, read, to, cast);
  return cast;
}

function difference(
  rank: number,
  tensor: string,
  storage: string,
  dtype: DType,
  offset: number,
  wanted: Uint8Array,
  seen: Uint8Array,
): NcclExtError {
  const at = wanted.findIndex((byte, index) => byte !== seen[index]);
  const element = Math.floor((offset + at) / dtypeBytes(dtype));
  return new NcclExtError(
    'ERR_VERIFY',
    `Rank ${rank}: ${tensor} in ${storage} differs from its source at local element ${element} of a piece: byte 0x${hex(wanted[at])} expected, 0x${hex(seen[at])} there.`,
    { rank, field: tensor, op: 'refit', expected: wanted[at], seen: seen[at] },
  );
}

function hex(byte: number | undefined): string {
  return (byte ?? 0).toString(16).padStart(2, '0');
}
