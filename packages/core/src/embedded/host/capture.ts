// SPDX-License-Identifier: Apache-2.0
// What a stream collects while it records a graph. What a capture refers to counts as used by a graph from then on.

import type { BufferState, Capture, EventState, TransferState } from './objects.js';

export function emptyCapture(): Capture {
  return { nodes: [], events: new Map(), buffers: new Set(), calls: [], transfers: new Set() };
}

/** The event's slot among the parameters of a launch, and how often the graph has recorded it so far. */
export function capturedEvent(
  capture: Capture,
  event: EventState,
): { readonly slot: number; records: number } {
  let entry = capture.events.get(event);
  if (entry === undefined) {
    entry = { slot: capture.events.size, records: 0 };
    capture.events.set(event, entry);
    event.graphs++;
  }
  return entry;
}

/** Notes that the graph uses an object. */
export function capturedUse(capture: Capture, object: BufferState | TransferState): void {
  const set: Set<BufferState | TransferState> =
    object.kind === 'buffer' ? capture.buffers : capture.transfers;
  if (set.has(object)) return;
  set.add(object);
  object.graphs++;
}

/** Gives up everything that a capture refers to. */
export function releaseCapture(capture: Capture, releaseCall: (call: number) => void): void {
  for (const object of [...capture.buffers, ...capture.events.keys(), ...capture.transfers]) object.graphs--;
  for (const call of capture.calls) releaseCall(call);
}
