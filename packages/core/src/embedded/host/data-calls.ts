// SPDX-License-Identifier: Apache-2.0
// Calls that put work on a stream: copies, fills, uploads, downloads, barriers.

import type { ErrorRecord, RuntimeSpi, Status } from '../../contract/index.js';
import { operations } from '../control/records.js';
import { offsetOf } from '../memory/address.js';
import { bytesAt } from '../memory/space.js';
import { capturedUse } from './capture.js';
import { enqueue, push, roomFor } from './enqueue.js';
import { checkInteger, errorRecord, isError } from './errors.js';
import type { HostCall } from './host-calls.js';
import type { BufferState, StreamState } from './objects.js';
import { type BackendState, checkRange, foreign } from './state.js';

type DataCalls = Pick<
  RuntimeSpi,
  'enqueueCopy' | 'enqueueFill' | 'enqueueUpload' | 'enqueueDownload' | 'enqueueHostCall' | 'enqueueBarrier'
>;

export function dataCalls(state: BackendState): DataCalls {
  return {
    enqueueCopy(streamHandle, destinationHandle, destinationOffset, sourceHandle, sourceOffset, bytes) {
      const stream = state.stream(streamHandle, 'copy');
      if (isError(stream)) return state.refuse(stream);
      const destination = range(
        state,
        stream,
        'copy',
        'destination',
        destinationHandle,
        destinationOffset,
        bytes,
      );
      if (isError(destination)) return state.refuse(destination);
      const source = range(state, stream, 'copy', 'source', sourceHandle, sourceOffset, bytes);
      if (isError(source)) return state.refuse(source);
      if (source === destination && Math.abs(sourceOffset - destinationOffset) < bytes)
        return state.refuse(
          errorRecord(
            'ERR_OVERLAP',
            'copy',
            `source bytes from ${sourceOffset} and destination bytes from ${destinationOffset} overlap in one buffer`,
            { rank: stream.owner.rank, expected: bytes, seen: Math.abs(sourceOffset - destinationOffset) },
          ),
        );
      const to = destination.address + destinationOffset;
      const from = source.address + sourceOffset;
      const status = enqueue(state, stream, [operations.copy, to, from, bytes, 0]);
      if (status === 0) for (const buffer of [destination, source]) use(buffer, stream);
      return status;
    },

    enqueueFill(streamHandle, handle, byteOffset, bytes, value) {
      const stream = state.stream(streamHandle, 'fill');
      if (isError(stream)) return state.refuse(stream);
      const buffer = range(state, stream, 'fill', 'buffer', handle, byteOffset, bytes);
      if (isError(buffer)) return state.refuse(buffer);
      const wrong = checkInteger('fill', 'value', value, 0, 255);
      if (wrong !== undefined) return state.refuse(wrong);
      const status = enqueue(state, stream, [operations.fill, buffer.address + byteOffset, bytes, value, 0]);
      if (status === 0) use(buffer, stream);
      return status;
    },

    enqueueUpload: (stream, buffer, byteOffset, host) =>
      hostCopy(state, 'upload', stream, buffer, byteOffset, host, (device) => device.set(host)),

    enqueueDownload: (stream, host, buffer, byteOffset) =>
      hostCopy(state, 'download', stream, buffer, byteOffset, host, (device) => host.set(device)),

    enqueueHostCall(streamHandle, call) {
      const stream = state.stream(streamHandle, 'callHost');
      if (isError(stream)) return state.refuse(stream);
      return enqueueCall(state, stream, () => runHostCall(call, stream.owner.rank));
    },

    enqueueBarrier(streamHandle) {
      const stream = state.stream(streamHandle, 'barrier');
      if (isError(stream)) return state.refuse(stream);
      return enqueue(state, stream, [operations.barrier, 0, 0, 0, 0]);
    },
  };
}

/** Puts a call on a stream; it runs on this thread when the stream reaches it. */
function enqueueCall(state: BackendState, stream: StreamState, call: HostCall): Status {
  const full = roomFor(stream, operations.host);
  if (full !== undefined) return state.refuse(full);
  const id = stream.owner.world.calls.add(call, stream.capture !== undefined);
  stream.capture?.calls.push(id);
  push(stream, [operations.host, id, 0, 0, 0]);
  return 0;
}

/** What the user's function throws becomes a record, at once or when its promise rejects. */
function runHostCall(
  call: () => void | Promise<void>,
  rank: number,
): ErrorRecord | undefined | Promise<ErrorRecord | undefined> {
  const thrown = (cause: unknown): ErrorRecord => ({
    ...errorRecord(
      'ERR_HOST_CALL',
      'callHost',
      `a function called by a stream of rank ${rank} failed: ${textOf(cause)}`,
      {
        rank,
        help: 'See the cause; the stream went on after it.',
      },
    ),
    cause,
  });
  try {
    const result: unknown = call();
    return isThenable(result) ? Promise.resolve(result).then(() => undefined, thrown) : undefined;
  } catch (cause) {
    return thrown(cause);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | undefined)?.then === 'function';
}

function textOf(cause: unknown): string {
  try {
    return cause instanceof Error ? cause.message : String(cause);
  } catch {
    return `a value of type ${typeof cause} without a text`;
  }
}

function hostCopy(
  state: BackendState,
  op: string,
  streamHandle: number,
  handle: number,
  byteOffset: number,
  host: Uint8Array,
  copy: (device: Uint8Array) => void,
): Status {
  const stream = state.stream(streamHandle, op);
  if (isError(stream)) return state.refuse(stream);
  const buffer = range(state, stream, op, 'buffer', handle, byteOffset, host.byteLength);
  if (isError(buffer)) return state.refuse(buffer);
  const bytes = host.byteLength;
  const status = enqueueCall(state, stream, () => {
    // The memory of a typed array can be transferred away while the copy waits in the stream.
    if (host.byteLength !== bytes) return detached(op, stream, bytes, host.byteLength);
    copy(bytesAt(state.arena.space(buffer.address), offsetOf(buffer.address) + byteOffset, bytes));
    return undefined;
  });
  if (status === 0) use(buffer, stream);
  return status;
}

function detached(op: string, stream: StreamState, expected: number, seen: number): ErrorRecord {
  const detail = `the host array of ${op} had ${expected} bytes when it was enqueued and ${seen} when its turn came`;
  return errorRecord('ERR_INVALID_ARGUMENT', op, detail, {
    rank: stream.owner.rank,
    expected,
    seen,
    help: 'Keep the array as it is until the stream has passed; do not transfer its memory to another thread.',
  });
}

/** A buffer of the stream's rank that holds the range. */
function range(
  state: BackendState,
  stream: StreamState,
  op: string,
  name: string,
  handle: number,
  byteOffset: number,
  bytes: number,
): BufferState | ErrorRecord {
  const buffer = state.owned('buffer', handle, op);
  if (isError(buffer)) return buffer;
  return foreign(buffer, stream.owner, op) ?? checkRange(op, name, byteOffset, bytes, buffer.bytes) ?? buffer;
}

/** Notes that the operation just enqueued, or the graph under way, uses the buffer. */
function use(buffer: BufferState, stream: StreamState): void {
  if (stream.capture === undefined) buffer.uses.set(stream, stream.enqueued);
  else capturedUse(stream.capture, buffer);
}
