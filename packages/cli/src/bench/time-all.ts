// SPDX-License-Identifier: Apache-2.0
// One sample: from the first enqueue until the slowest rank is done.

import type { Stream } from '@nccl-ext/core';

/** Enqueues on every rank, then waits for every rank; milliseconds. */
export async function timeAll<S extends { readonly stream: Stream }>(
  states: readonly S[],
  enqueue: (state: S) => void,
): Promise<number> {
  const began = performance.now();
  for (const state of states) enqueue(state);
  await Promise.all(states.map(({ stream }) => stream.synchronize()));
  return performance.now() - began;
}
