// SPDX-License-Identifier: Apache-2.0
// One sample: what every rank enqueues, from a common start until the slowest rank is done.

import type { Stream } from '@nccl-ext/core';
import type { DeviceClock } from './device-clock.js';

interface Timed {
  readonly stream: Stream;
  /** Absent: the host's clock tells the time. */
  readonly clock?: DeviceClock | undefined;
}

/**
 * Enqueues on every rank of this process, then waits for them; milliseconds of the slowest one.
 *
 * On a GPU each rank's stream holds a fill, a barrier of all ranks, an event, the work and an event. The fill keeps the barrier closed
 * until the rank that is enqueued last has its work in the queue too, so no launch is part of a sample; a rank's time goes from its first event,
 * which the barrier sets off on all ranks within a microsecond or two, to its second. On the host a sample goes from the first enqueue until
 * all ranks are done.
 */
export async function timeAll<S extends Timed>(
  states: readonly S[],
  enqueue: (state: S) => void,
): Promise<number> {
  const began = performance.now();
  for (const state of states) {
    const { stream, clock } = state;
    if (clock !== undefined) {
      stream.fill(clock.gate, 0);
      stream.barrier();
      stream.record(clock.start);
    }
    enqueue(state);
    if (clock !== undefined) stream.record(clock.end);
  }
  await Promise.all(states.map(({ stream }) => stream.synchronize()));
  const ended = performance.now();
  return Math.max(
    ...states.map(({ clock }) => (clock === undefined ? ended - began : clock.end.elapsedMs(clock.start))),
  );
}
