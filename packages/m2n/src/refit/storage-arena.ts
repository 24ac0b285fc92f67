// SPDX-License-Identifier: Apache-2.0
// One buffer per rank and side that holds all storages of a plan.

import type { BufferRange, Communicator, DeviceBuffer } from '@nccl-ext/core';
import type { HeldTensor } from '../plan/transfer-plan.js';

/** Storages start at multiples of this, as device allocators align. */
const alignment = 256;

/** Where each storage of one side lies on one rank. */
export interface StorageArena {
  readonly held: readonly HeldTensor[];
  readonly buffer: DeviceBuffer | undefined;
  readonly bindings: Readonly<Record<string, BufferRange>>;
  readonly bytes: number;
}

/** Where the storages behind tensors will lie, before there is memory. */
export interface PlacedStorages {
  readonly held: readonly HeldTensor[];
  readonly offsets: ReadonlyMap<string, number>;
  readonly bytes: number;
}

/** Allocates what was placed. */
export function allocateStorages(communicator: Communicator, placed: PlacedStorages): StorageArena {
  const { held, offsets, bytes } = placed;
  const buffer = bytes === 0 ? undefined : communicator.allocate(bytes);
  // An empty storage needs an address too, hence the one-byte buffer.
  const memory = buffer ?? (offsets.size > 0 ? communicator.allocate(1) : undefined);
  const bindings = Object.fromEntries(
    [...offsets].map(([storage, byteOffset]) => [storage, { buffer: memory!, byteOffset }]),
  );
  return { held, buffer: memory, bindings, bytes };
}

/** Places the storages behind `held` one after the other. */
export function placeStorages(held: readonly HeldTensor[]): PlacedStorages {
  const sizes = new Map<string, number>();
  for (const { storage, requiredBytes } of held)
    sizes.set(storage, Math.max(sizes.get(storage) ?? 0, requiredBytes));
  const offsets = new Map<string, number>();
  let bytes = 0;
  for (const [storage, size] of sizes) {
    offsets.set(storage, bytes);
    bytes += Math.ceil(size / alignment) * alignment;
  }
  return { held, offsets, bytes };
}
