// SPDX-License-Identifier: Apache-2.0
// What a stream collects while it records a graph. What a capture refers to counts as used by a graph from then on.

import type { EpHandleState } from '../ep/ep-objects.js';
import type { BufferState, Capture, EventState, TransferState } from './objects.js';

export function emptyCapture(): Capture {
  return {
    nodes: [],
    events: new Map(),
    buffers: new Set(),
    calls: [],
    transfers: new Set(),
    epHandles: new Set(),
    epGroups: new Map(),
    epCalls: [],
    parameters: 0,
  };
}

/** The event's slot among the parameters of a launch, and how often the graph has recorded it so far. */
export function capturedEvent(
  capture: Capture,
  event: EventState,
): { readonly slot: number; records: number } {
  let entry = capture.events.get(event);
  if (entry === undefined) {
    entry = { slot: capture.parameters++, records: 0 };
    capture.events.set(event, entry);
    event.graphs++;
  }
  return entry;
}

/** Notes that the graph uses an object. */
export function capturedUse(capture: Capture, object: BufferState | TransferState | EpHandleState): void {
  const set: Set<BufferState | TransferState | EpHandleState> =
    object.kind === 'buffer'
      ? capture.buffers
      : object.kind === 'transfer'
        ? capture.transfers
        : capture.epHandles;
  if (set.has(object)) return;
  set.add(object);
  object.graphs++;
}

/** Gives up everything that a capture refers to. */
export function releaseCapture(capture: Capture, releaseCall: (call: number) => void): void {
  const objects = [...capture.buffers, ...capture.events.keys(), ...capture.transfers, ...capture.epHandles];
  for (const object of objects) object.graphs--;
  for (const call of capture.calls) releaseCall(call);
}
