// SPDX-License-Identifier: Apache-2.0
// Calls that make, await and free streams.

import type { ErrorRecord, RuntimeSpi } from '../../contract/index.js';
import { maxStreams, ring, streamEntry, streamWord, worldWord } from '../control/world-layout.js';
import { offsetOf } from '../memory/address.js';
import { takeError } from '../worker/failure.js';
import { queuedIn } from './enqueue.js';
import { errorRecord, failed, isError, succeeded } from './errors.js';
import type { RankState, StreamState } from './objects.js';
import type { BackendState } from './state.js';

type StreamCalls = Pick<
  RuntimeSpi,
  'createStream' | 'streamAddress' | 'freeStream' | 'queued' | 'synchronize'
>;

export function streamCalls(state: BackendState): StreamCalls {
  return {
    createStream(handle) {
      const rank = state.rank(handle, 'createStream');
      if (isError(rank)) return failed(rank);
      const stream = openStream(state, rank);
      if (isError(stream)) return failed(stream);
      rank.objects.add(stream);
      return succeeded(state.handles.add(stream));
    },

    streamAddress(handle) {
      const stream = state.handles.get('stream', handle, 'streamAddress');
      return isError(stream) ? 0n : BigInt(stream.ringAddress);
    },

    freeStream(handle) {
      const stream = state.owned('stream', handle, 'freeStream');
      if (isError(stream)) return state.refuse(stream);
      const wrong = notFree(stream);
      if (wrong !== undefined) return state.refuse(wrong);
      freeStreamState(state, stream);
      return 0;
    },

    queued(handle) {
      const stream = state.handles.get('stream', handle, 'queued');
      return isError(stream) ? 0 : queuedIn(stream);
    },

    async synchronize(handle) {
      const stream = state.owned('stream', handle, 'synchronize');
      if (isError(stream)) return failed(stream);
      const { world, rank } = stream.owner;
      if (stream.capture !== undefined)
        return failed(
          errorRecord(
            'ERR_INVALID_STATE',
            'synchronize',
            'a stream that records a graph cannot be synchronized',
            {
              rank,
              help: 'Call endCapture first.',
            },
          ),
        );
      await world.reached(stream, stream.enqueued);
      if (world.failure !== undefined) return failed({ ...world.failure, rank });
      const error = errorOf(stream);
      return error === undefined ? succeeded(undefined) : failed(error);
    },
  };
}

/** Frees a stream whose work is done. */
export function freeStreamState(state: BackendState, stream: StreamState): void {
  const { world } = stream.owner;
  stream.leftError = takeStreamError(stream);
  stream.freed = true;
  // Whoever still waits need not wait for the worker's message, which would find no stream.
  for (const waiter of stream.waiters.splice(0)) waiter.settle();
  world.streams[stream.slot] = undefined;
  Atomics.store(world.space.i32, stream.entry + streamWord.owner, 0);
  // A worker touches the ring only before it counts an operation as finished, so nothing does now.
  state.arena.release(stream.ringAddress);
  state.handles.remove(stream);
  stream.owner.objects.delete(stream);
}

/** Hands out the stream's error; a synchronize may end after the stream was freed, whose ring is then another's. */
function errorOf(stream: StreamState): ErrorRecord | undefined {
  if (!stream.freed) return takeStreamError(stream);
  const error = stream.leftError;
  stream.leftError = undefined;
  return error;
}

function takeStreamError(stream: StreamState): ErrorRecord | undefined {
  const error = takeError(stream.ring, stream.ringOffset);
  const { cause } = stream;
  stream.cause = undefined;
  return error === undefined || cause === undefined ? error : { ...error, cause };
}

function openStream(state: BackendState, owner: RankState): StreamState | ErrorRecord {
  const { world, rank } = owner;
  const { i32, f64 } = world.space;
  world.crew.sweep();
  const slot = freeSlot(owner);
  if (slot === maxStreams)
    return errorRecord('ERR_OUT_OF_MEMORY', 'createStream', `a world holds at most ${maxStreams} streams`, {
      rank,
      expected: maxStreams,
      seen: maxStreams + 1,
      help: 'Dispose streams that are no longer used.',
    });
  const ringAddress = state.arena.allocateZeroed(ring.bytes);
  if (ringAddress === undefined)
    return errorRecord('ERR_OUT_OF_MEMORY', 'createStream', `no memory for a stream of rank ${rank}`, {
      rank,
    });
  const entry = world.base + streamEntry(world.options.ranks, slot);
  for (const word of [streamWord.head, streamWord.tail, streamWord.suspended, streamWord.wanted])
    Atomics.store(i32, entry + word, 0);
  f64[entry / 2 + streamWord.ringF64] = ringAddress;
  // Workers read the rest only after they have seen the owner.
  Atomics.store(i32, entry + streamWord.owner, rank + 1);
  if (slot >= Atomics.load(i32, world.base + worldWord.streams))
    Atomics.store(i32, world.base + worldWord.streams, slot + 1);
  const stream: StreamState = {
    kind: 'stream',
    handle: 0,
    owner,
    slot,
    entry,
    ringAddress,
    ring: state.arena.space(ringAddress),
    ringOffset: offsetOf(ringAddress),
    enqueued: 0,
    waiters: [],
    capture: undefined,
    freed: false,
    leftError: undefined,
    cause: undefined,
  };
  world.streams[slot] = stream;
  return stream;
}

/** The first entry that neither a stream nor a worker holds: who ended the last operation may not have let go of it yet. */
function freeSlot(owner: RankState): number {
  const { world } = owner;
  for (let slot = 0; slot < maxStreams; slot++) {
    const lock = world.base + streamEntry(world.options.ranks, slot) + streamWord.lock;
    if (world.streams[slot] === undefined && Atomics.load(world.space.i32, lock) === 0) return slot;
  }
  return maxStreams;
}

function notFree(stream: StreamState): ErrorRecord | undefined {
  const { rank } = stream.owner;
  if (stream.capture !== undefined)
    return errorRecord('ERR_INVALID_STATE', 'freeStream', `a stream of rank ${rank} records a graph`, {
      rank,
      help: 'Call endCapture first.',
    });
  const queued = queuedIn(stream);
  if (queued === 0) return undefined;
  return errorRecord(
    'ERR_BUSY',
    'freeStream',
    `a stream of rank ${rank} has ${queued} unfinished operations`,
    {
      rank,
      seen: queued,
      help: 'Await synchronize() first.',
    },
  );
}
