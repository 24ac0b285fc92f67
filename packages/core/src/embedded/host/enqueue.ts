// SPDX-License-Identifier: Apache-2.0
// Puts one record into a stream, or into the graph that the stream records.

import { type ErrorRecord, maxQueuedOperations, type Status } from '../../contract/index.js';
import { type OperationRecord, operationName, recordBytes, writeRecord } from '../control/records.js';
import { ring, streamWord } from '../control/world-layout.js';
import { errorRecord } from './errors.js';
import type { StreamState } from './objects.js';
import type { BackendState } from './state.js';

/** Unfinished operations of a stream. */
export function queuedIn(stream: StreamState): number {
  return stream.enqueued - stream.owner.world.completed(stream);
}

/** Whether a stream can take `operation`; ask before anything is changed for it. */
export function roomFor(stream: StreamState, operation: number): ErrorRecord | undefined {
  if (stream.capture !== undefined || queuedIn(stream) < maxQueuedOperations) return undefined;
  const op = operationName(operation);
  return errorRecord(
    'ERR_QUEUE_FULL',
    op,
    `the stream of rank ${stream.owner.rank} already holds ${maxQueuedOperations} unfinished operations`,
    {
      rank: stream.owner.rank,
      expected: maxQueuedOperations,
      seen: maxQueuedOperations + 1,
      help: 'Await synchronize() before enqueueing more, or record a graph.',
    },
  );
}

/** Enqueues or records an operation for which there is room. */
export function push(stream: StreamState, record: OperationRecord): void {
  if (stream.capture !== undefined) {
    stream.capture.nodes.push(record);
    return;
  }
  const { world } = stream.owner;
  const slot = stream.enqueued & (maxQueuedOperations - 1);
  writeRecord(stream.ring.f64, (stream.ringOffset + ring.records + slot * recordBytes) / 8, record);
  stream.enqueued++;
  Atomics.store(world.space.i32, stream.entry + streamWord.tail, stream.enqueued | 0);
  world.wake();
}

/** Checks for room, pushes, and returns 0, or keeps the error and returns its number. */
export function enqueue(state: BackendState, stream: StreamState, record: OperationRecord): Status {
  const full = roomFor(stream, record[0]);
  if (full !== undefined) return state.refuse(full);
  push(stream, record);
  return 0;
}
