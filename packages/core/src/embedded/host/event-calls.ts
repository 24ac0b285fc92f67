// SPDX-License-Identifier: Apache-2.0
// Calls about events. A wait is for one record, so the owner counts records and workers mark each as reached.

import type { ErrorRecord, RuntimeSpi } from '../../contract/index.js';
import { eventCell, eventSlots, isReached, timeOf } from '../control/event-cell.js';
import { operations } from '../control/records.js';
import { rankWord } from '../control/world-layout.js';
import { offsetOf } from '../memory/address.js';
import { capturedEvent } from './capture.js';
import { enqueue, push, roomFor } from './enqueue.js';
import { errorRecord, failed, isError, succeeded } from './errors.js';
import type { EventState, RankState, StreamState } from './objects.js';
import { type BackendState, isIdle } from './state.js';

type EventCalls = Pick<
  RuntimeSpi,
  'createEvent' | 'freeEvent' | 'recordEvent' | 'waitEvent' | 'queryEvent' | 'synchronizeEvent' | 'elapsedMs'
>;

export function eventCalls(state: BackendState): EventCalls {
  return {
    createEvent(handle) {
      const rank = state.rank(handle, 'createEvent');
      if (isError(rank)) return failed(rank);
      const event = openEvent(state, rank);
      if (isError(event)) return failed(event);
      rank.objects.add(event);
      return succeeded(state.handles.add(event));
    },

    freeEvent(handle) {
      const event = state.owned('event', handle, 'freeEvent');
      if (isError(event)) return state.refuse(event);
      freeEventState(state, event);
      return 0;
    },

    recordEvent(handle, streamHandle) {
      const pair = eventAndStream(state, handle, streamHandle, 'recordEvent');
      if (isError(pair)) return state.refuse(pair);
      const [event, stream] = pair;
      if (event.owner !== stream.owner)
        return state.refuse(
          errorRecord(
            'ERR_FOREIGN_OBJECT',
            'recordEvent',
            `an event of rank ${event.owner.rank} cannot be recorded on a stream of rank ${stream.owner.rank}`,
            { rank: stream.owner.rank, peer: event.owner.rank },
          ),
        );
      if (stream.capture !== undefined) {
        const entry = capturedEvent(stream.capture, event);
        push(stream, [operations.record, event.cell, ++entry.records, entry.slot, 0]);
        return 0;
      }
      const full = roomFor(stream, operations.record) ?? slotTaken(event, stream, 1);
      if (full !== undefined) return state.refuse(full);
      noteRecords(event, stream, 1, stream.enqueued + 1);
      push(stream, [operations.record, event.cell, event.generation, -1, 0]);
      return 0;
    },

    waitEvent(streamHandle, handle) {
      const pair = eventAndStream(state, handle, streamHandle, 'waitEvent');
      if (isError(pair)) return state.refuse(pair);
      const [event, stream] = pair;
      if (event.owner.world.crew !== stream.owner.world.crew)
        return state.refuse(
          errorRecord(
            'ERR_FOREIGN_OBJECT',
            'waitEvent',
            'the event belongs to another world than the stream',
            {
              rank: stream.owner.rank,
              peer: event.owner.rank,
            },
          ),
        );
      const owner = event.owner.world.rankAddress(event.owner.rank);
      if (stream.capture !== undefined) {
        const entry = capturedEvent(stream.capture, event);
        push(stream, [operations.wait, event.cell, entry.records, entry.slot, owner]);
        return 0;
      }
      const status = enqueue(state, stream, [operations.wait, event.cell, event.generation, -1, owner]);
      if (status === 0) event.uses.set(stream, stream.enqueued);
      return status;
    },

    queryEvent(handle) {
      const event = state.owned('event', handle, 'queryEvent');
      if (isError(event)) return failed(event);
      return succeeded(isReached(event.space, event.offset, event.generation));
    },

    async synchronizeEvent(handle) {
      const event = state.owned('event', handle, 'synchronizeEvent');
      if (isError(event)) return failed(event);
      const { world, rank } = event.owner;
      await world.eventReached(event, event.generation);
      // A poisoned rank reaches its records without having done the work before them.
      const error = world.poisonOf(rank);
      return error === undefined ? succeeded(undefined) : failed(error);
    },

    elapsedMs(startHandle, endHandle) {
      const start = state.owned('event', startHandle, 'elapsedMs');
      if (isError(start)) return failed(start);
      const end = state.owned('event', endHandle, 'elapsedMs');
      if (isError(end)) return failed(end);
      const wrong = notReached(start, 'start') ?? notReached(end, 'end');
      if (wrong !== undefined) return failed(wrong);
      return succeeded(
        timeOf(end.space, end.offset, end.generation) - timeOf(start.space, start.offset, start.generation),
      );
    },
  };
}

/** Frees an event; its cell stays until no queued operation and no graph refers to it. */
export function freeEventState(state: BackendState, event: EventState): void {
  event.owner.world.crew.defer(
    () => event.graphs === 0 && event.waiters.length === 0 && isIdle(event.uses),
    () => state.arena.release(event.cell),
  );
  state.handles.remove(event);
  event.owner.objects.delete(event);
}

/** Why the next `count` records of an event cannot go to `stream` now: a slot of the cell is still owed by another one. */
export function slotTaken(event: EventState, stream: StreamState, count: number): ErrorRecord | undefined {
  for (let i = 1; i <= Math.min(count, eventSlots); i++) {
    const old = event.generation + i - eventSlots;
    if (old < 1 || isReached(event.space, event.offset, old) || event.recorders[old % eventSlots] === stream)
      continue;
    return errorRecord(
      'ERR_QUEUE_FULL',
      'recordEvent',
      `an event of rank ${event.owner.rank} has ${eventSlots} unreached records on several streams`,
      { rank: event.owner.rank, expected: eventSlots, help: 'Synchronize the streams that record it first.' },
    );
  }
  return undefined;
}

/** Counts `count` records that operation `ticket` of `stream` makes. */
export function noteRecords(event: EventState, stream: StreamState, count: number, ticket: number): void {
  for (let i = 0; i < count; i++) event.recorders[++event.generation % eventSlots] = stream;
  event.uses.set(stream, ticket);
}

function openEvent(state: BackendState, owner: RankState): EventState | ErrorRecord {
  owner.world.crew.sweep();
  const cell = state.arena.allocateZeroed(eventCell.bytes);
  if (cell === undefined)
    return errorRecord('ERR_OUT_OF_MEMORY', 'createEvent', `no memory for an event of rank ${owner.rank}`, {
      rank: owner.rank,
    });
  const [space, offset] = [state.arena.space(cell), offsetOf(cell)];
  const { world, rank } = owner;
  space.i32[(offset + eventCell.origin) / 4] = world.space.i32[world.rankBase(rank) + rankWord.origin]!;
  return {
    kind: 'event',
    handle: 0,
    owner,
    cell,
    space,
    offset,
    generation: 0,
    recorders: [],
    uses: new Map(),
    graphs: 0,
    waiters: [],
  };
}

function eventAndStream(
  state: BackendState,
  eventHandle: number,
  streamHandle: number,
  op: string,
): [EventState, StreamState] | ErrorRecord {
  const stream = state.stream(streamHandle, op);
  if (isError(stream)) return stream;
  const event = state.owned('event', eventHandle, op);
  return isError(event) ? event : [event, stream];
}

function notReached(event: EventState, name: string): ErrorRecord | undefined {
  if (event.generation > 0 && isReached(event.space, event.offset, event.generation)) return undefined;
  const what = event.generation === 0 ? 'was never recorded' : 'has not been reached';
  return errorRecord('ERR_INVALID_STATE', 'elapsedMs', `the ${name} event ${what}`, {
    rank: event.owner.rank,
  });
}
