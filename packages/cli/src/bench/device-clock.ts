// SPDX-License-Identifier: Apache-2.0
// What a sample on a GPU is timed with: events around it, and a gate before it.

import type { Communicator, DeviceBuffer, Stream, StreamEvent } from '@nccl-ext/core';

/** Filling them takes a GPU longer than the host needs to enqueue the first work of a rank: some tens of microseconds. */
const gateBytes = 64 * 2 ** 20;

export interface DeviceClock {
  readonly start: StreamEvent;
  readonly end: StreamEvent;
  /** Filled before the barrier that starts a sample. */
  readonly gate: DeviceBuffer;
}

/** A stream of a rank, and a clock where the backend has events that tell the device's time. */
export interface TimedRank {
  readonly communicator: Communicator;
  readonly stream: Stream;
  readonly clock?: DeviceClock | undefined;
}

/** What it makes goes to `owned`, to be disposed in that order. */
export function openTimed(communicator: Communicator, owned: { dispose(): Promise<void> }[]): TimedRank {
  const stream = communicator.createStream();
  owned.push(stream);
  // The embedded backend has no device: the host's clock tells the same.
  if (communicator.device.multiprocessors === 0) return { communicator, stream };
  const clock = {
    start: communicator.createEvent(),
    end: communicator.createEvent(),
    gate: communicator.allocate(gateBytes, 'plain'),
  };
  owned.push(clock.start, clock.end, clock.gate);
  return { communicator, stream, clock };
}
