// SPDX-License-Identifier: Apache-2.0
// Fills every rank's source storages with its shards, as a trainer would hold them.

import { dtypeBytes } from '@nccl-ext/core';
import type { HostAccess } from './host-access.js';
import { denseRows, isDense, partPieces, pieceRange } from './part-pieces.js';
import type { StorageArena } from './storage-arena.js';
import type { ValueSource } from './values.js';

/** Reads the shards of one rank; `onBytes` hears of every piece; stops at the signal with its reason. */
export async function loadSources(
  arena: StorageArena,
  access: HostAccess,
  values: ValueSource,
  onBytes: (bytes: number) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const { name, storage, dtype, parts } of arena.held) {
    const { buffer, byteOffset: base = 0 } = arena.bindings[storage]!;
    for (const part of parts) {
      for (const piece of partPieces(part, dtype)) {
        signal?.throwIfAborted();
        const bytes = piece.elements * dtypeBytes(dtype);
        const whole = isDense(piece, dtype);
        await access.write(buffer, pieceRange(piece, dtype, base), whole, async (target) => {
          if (whole) return values.read(name, piece.dims, target);
          const dense = new Uint8Array(bytes);
          await values.read(name, piece.dims, dense);
          let at = 0;
          for (const row of denseRows(piece, dtype)) {
            target.set(dense.subarray(at, at + row.bytes), row.byteOffset - piece.byteOffset);
            at += row.bytes;
          }
        });
        onBytes(bytes);
      }
    }
  }
}
