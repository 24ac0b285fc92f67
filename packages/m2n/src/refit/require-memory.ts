// SPDX-License-Identifier: Apache-2.0
// Refuses a refit that does not fit, before anything is allocated.

import { type Communicator, NcclExtError, type World } from '@nccl-ext/core';

/** What a rank takes of a GPU besides its shards: its program, tables of values, staging of copies, rounding of allocations. */
const besidesBytes = 64 * 2 ** 20;

/**
 * @param shardBytes by rank.
 * @throws ERR_OUT_OF_MEMORY naming the device that cannot hold the shards of its ranks, and the sizes.
 */
export function requireMemory(world: World, shardBytes: readonly number[]): void {
  const byDevice = new Map<number, { readonly rank: Communicator; bytes: number }>();
  for (const rank of world.ranks) {
    const { index, multiprocessors } = rank.device;
    const needed = shardBytes[rank.rank]! + (multiprocessors > 0 ? besidesBytes : 0);
    const before = byDevice.get(index);
    if (before === undefined) byDevice.set(index, { rank, bytes: needed });
    else before.bytes += needed;
  }
  for (const { rank, bytes } of byDevice.values()) {
    const free = rank.availableMemory;
    if (bytes > free) throw tooLarge(rank, bytes, free);
  }
}

function tooLarge(rank: Communicator, bytes: number, free: number): NcclExtError {
  const { index, multiprocessors } = rank.device;
  const [whose, where] =
    multiprocessors > 0 ? [`the ranks on GPU ${index}`, `on GPU ${index}`] : ['all ranks', 'on this machine'];
  return new NcclExtError(
    'ERR_OUT_OF_MEMORY',
    `The shards of ${whose} take ${gigabytes(bytes)}; ${gigabytes(free)} are free ${where}.`,
    {
      op: 'refit',
      expected: free,
      seen: bytes,
      help: 'Use fewer layers (--layers), more GPUs, or plan without data: nccl-ext plan m2n.',
    },
  );
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
