// SPDX-License-Identifier: Apache-2.0
// Streams of checks on worlds that later cases use too: a GPU has room for 32 in a process.

import type { Stream, World } from '@nccl-ext/core';

const made = new WeakMap<World, Stream[]>();

/** One stream per rank, until {@link disposeStreams}. */
export function streamsOf(world: World): readonly Stream[] {
  const streams = world.ranks.map((communicator) => communicator.createStream());
  made.set(world, [...(made.get(world) ?? []), ...streams]);
  return streams;
}

/** Ends those that are left; disposing one again does nothing. */
export async function disposeStreams(world: World): Promise<void> {
  const streams = made.get(world) ?? [];
  made.delete(world);
  for (const stream of streams) await stream.dispose();
}
