// SPDX-License-Identifier: Apache-2.0
// What a rank of a refit has: its shards on both sides, and one stream for everything, because a GPU has room for few.

import type { Communicator, Stream, World } from '@nccl-ext/core';
import type { TransferPlan } from '../plan/transfer-plan.js';
import { requireMemory } from './require-memory.js';
import { allocateStorages, placeStorages, type StorageArena } from './storage-arena.js';

export interface RankMemory {
  readonly communicator: Communicator;
  readonly stream: Stream;
  readonly sources: StorageArena;
  readonly destinations: StorageArena;
}

/**
 * Memory of every rank of the world, by rank; it goes with the world.
 *
 * @throws ERR_OUT_OF_MEMORY before anything is allocated when a device has no room for its ranks.
 */
export function allocateRanks(world: World, plan: TransferPlan): readonly RankMemory[] {
  const placed = world.ranks.map(({ rank }) => ({
    sources: placeStorages(plan.sourceTensorsOf(rank)),
    destinations: placeStorages(plan.destinationTensorsOf(rank)),
  }));
  requireMemory(
    world,
    placed.map(({ sources, destinations }) => sources.bytes + destinations.bytes),
  );
  return world.ranks.map((communicator) => {
    const { sources, destinations } = placed[communicator.rank]!;
    return {
      communicator,
      stream: communicator.createStream(),
      sources: allocateStorages(communicator, sources),
      destinations: allocateStorages(communicator, destinations),
    };
  });
}

/**
 * A running engine's memory holds an older version: it has been touched, and none of its bytes is right by chance.
 */
export async function poisonDestinations(ranks: readonly RankMemory[]): Promise<void> {
  await Promise.all(
    ranks.map(async ({ stream, destinations }) => {
      if (destinations.buffer === undefined) return;
      stream.fill(destinations.buffer, 0xde);
      await stream.synchronize();
    }),
  );
}
