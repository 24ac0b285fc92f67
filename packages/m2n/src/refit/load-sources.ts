// SPDX-License-Identifier: Apache-2.0
// Fills every rank's source storages with its shards, as a trainer would hold them.

import { dtypeBytes } from '@nccl-ext/core';
import { denseRows, isDense, partPieces } from './part-pieces.js';
import type { StorageArena } from './storage-arena.js';
import type { ValueSource } from './values.js';

/** Reads the shards of one rank; `onBytes` hears of every piece; stops at the signal with its reason. */
export async function loadSources(
  arena: StorageArena,
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
        if (isDense(piece, dtype)) {
          await values.read(name, piece.dims, buffer.view('u8', base + piece.byteOffset, bytes));
        } else {
          const dense = new Uint8Array(bytes);
          await values.read(name, piece.dims, dense);
          let at = 0;
          for (const row of denseRows(piece, dtype)) {
            buffer.view('u8', base + row.byteOffset, row.bytes).set(dense.subarray(at, at + row.bytes));
            at += row.bytes;
          }
        }
        onBytes(bytes);
      }
    }
  }
}
