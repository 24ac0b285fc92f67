// SPDX-License-Identifier: Apache-2.0
// Streams of checks on worlds that later cases use too: a GPU has room for 32 in a process.

import type { Stream } from '@nccl-ext/core';
import type { CaseWorld } from './case-world.js';

const made = new WeakMap<CaseWorld, Stream[]>();

/** One stream per rank, until {@link disposeStreams}. */
export function streamsOf(world: CaseWorld): readonly Stream[] {
  const streams = world.ranks.map((communicator) => communicator.createStream());
  made.set(world, [...(made.get(world) ?? []), ...streams]);
  return streams;
}

/** Ends those that are left; disposing one again does nothing. */
export async function disposeStreams(world: CaseWorld): Promise<void> {
  const streams = made.get(world) ?? [];
  made.delete(world);
  for (const stream of streams) await stream.dispose();
}
