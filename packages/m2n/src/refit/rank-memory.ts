// SPDX-License-Identifier: Apache-2.0
// What a rank of a refit has: its shards on both sides, and one stream for everything, because a GPU has room for few.

import type { Communicator, Stream, World } from '@nccl-ext/core';
import type { TransferPlan } from '../plan/transfer-plan.js';
import { allocateStorages, type StorageArena } from './storage-arena.js';

export interface RankMemory {
  readonly communicator: Communicator;
  readonly stream: Stream;
  readonly sources: StorageArena;
  readonly destinations: StorageArena;
}

/** Memory of every rank of the world, by rank; it goes with the world. */
export function allocateRanks(world: World, plan: TransferPlan): readonly RankMemory[] {
  return world.ranks.map((communicator) => ({
    communicator,
    stream: communicator.createStream(),
    sources: allocateStorages(communicator, plan.sourceTensorsOf(communicator.rank)),
    destinations: allocateStorages(communicator, plan.destinationTensorsOf(communicator.rank)),
  }));
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
