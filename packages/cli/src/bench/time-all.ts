// SPDX-License-Identifier: Apache-2.0
// One sample: from the first enqueue until the slowest rank is done.

import type { Stream, StreamEvent } from '@nccl-ext/core';

/** What a rank enqueues on. `events`: around each sample, where events tell time; else the host's clock does. */
interface Timed {
  readonly stream: Stream;
  readonly events?: readonly [start: StreamEvent, end: StreamEvent] | undefined;
}

/**
 * Enqueues on every rank, then waits for every rank; milliseconds. On a GPU the clock starts behind a barrier, so that launches do
 * not count.
 */
export async function timeAll<S extends Timed>(
  states: readonly S[],
  enqueue: (state: S) => void,
): Promise<number> {
  const began = performance.now();
  for (const state of states) {
    const { stream, events } = state;
    if (events !== undefined) {
      stream.barrier();
      stream.record(events[0]);
    }
    enqueue(state);
    if (events !== undefined) stream.record(events[1]);
  }
  await Promise.all(states.map(({ stream }) => stream.synchronize()));
  const ended = performance.now();
  return Math.max(
    ...states.map(({ events }) => (events === undefined ? ended - began : events[1].elapsedMs(events[0]))),
  );
}
