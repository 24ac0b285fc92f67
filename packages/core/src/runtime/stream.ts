// SPDX-License-Identifier: Apache-2.0
// An in-order queue of device work. Enqueueing returns at once; `await synchronize()` is where time passes.

import type { BufferHandle, RuntimeSpi, StreamHandle } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireFunction } from '../errors/require-kind.js';
import { requireInteger } from '../mesh/require-integer.js';
import { publish } from '../observe/channels.js';
import type { BufferRange } from './buffer-range.js';
import type { Communicator } from './communicator.js';
import { bufferKind, type DeviceBuffer } from './device-buffer.js';
import { Graph } from './graph.js';
import { hostBytes } from './host-bytes.js';
import { requireLocal, requireOwn } from './require-own.js';
import { requireRange } from './require-range.js';
import { Resource } from './resource.js';
import { eventKind, type StreamEvent } from './stream-event.js';
import { check, errorFrom, unwrap } from './unwrap.js';

/**
 * A stream of one rank, made by {@link Communicator.createStream} or {@link Communicator.wrapStream}. It holds at most 256 unfinished operations; one more is
 * ERR_QUEUE_FULL and nothing is enqueued: synchronize, or record a graph.
 *
 * @example
 * ```ts
 * const stream = comm.createStream();
 * stream.fill(buffer, 0);
 * stream.upload(buffer, new Uint8Array([1, 2, 3]));
 * await stream.synchronize();
 * ```
 */
export class Stream extends Resource {
  readonly communicator: Communicator;
  readonly #runtime: RuntimeSpi;
  readonly #handle: StreamHandle;

  /** @internal Use `communicator.createStream`. */
  constructor(communicator: Communicator, runtime: RuntimeSpi, handle: StreamHandle) {
    super('stream', communicator);
    this.communicator = communicator;
    this.#runtime = runtime;
    this.#handle = handle;
  }

  /** The driver's stream (CUstream), for other libraries; on the embedded backend a unique number of the same kind. */
  get handle(): bigint {
    return this.#runtime.streamAddress(this.backendHandle);
  }

  /** @internal The backend's handle; other objects call theirs `handle`, which here is the driver's. */
  get backendHandle(): StreamHandle {
    this.assertUsable();
    return this.#handle;
  }

  /** Unfinished operations, 0 to 256. */
  get queued(): number {
    return this.#runtime.queued(this.backendHandle);
  }

  /** Resolves when everything enqueued so far is done; rejects with the first error since the last synchronize. */
  async synchronize(): Promise<void> {
    unwrap(await this.#runtime.synchronize(this.backendHandle));
  }

  record(event: StreamEvent): void {
    const { handle } = requireOwn(event, 'event', eventKind, this.communicator);
    check(this.#runtime, this.#runtime.recordEvent(handle, this.backendHandle));
  }

  /** Later work waits for the most recent record of `event`; the event may belong to another rank of this process. */
  wait(event: StreamEvent): void {
    const { handle } = requireLocal(event, 'event', eventKind, this.communicator);
    check(this.#runtime, this.#runtime.waitEvent(this.backendHandle, handle));
  }

  /** Work after it starts when every rank's stream has come to its own barrier. */
  barrier(): void {
    check(this.#runtime, this.#runtime.enqueueBarrier(this.backendHandle));
  }

  /** Copies `bytes` bytes between buffers of this rank; ranges must not overlap. */
  copy(destination: BufferRange, source: BufferRange, bytes: number): void {
    const to = this.#rangeOf(destination, 'destination', bytes);
    const from = this.#rangeOf(source, 'source', bytes);
    check(
      this.#runtime,
      this.#runtime.enqueueCopy(
        this.backendHandle,
        to.handle,
        to.byteOffset,
        from.handle,
        from.byteOffset,
        bytes,
      ),
    );
  }

  /** Sets bytes to `value` (0 to 255), to the end of the buffer unless `bytes` is given. */
  fill(buffer: DeviceBuffer, value: number, byteOffset = 0, bytes?: number): void {
    const own = requireOwn(buffer, 'buffer', bufferKind, this.communicator);
    requireInteger('ERR_INVALID_ARGUMENT', 'value', value, 0, 255);
    requireRange(ownRange, byteOffset, bytes ?? 0, own.bytes);
    const count = bytes ?? own.bytes - byteOffset;
    check(this.#runtime, this.#runtime.enqueueFill(this.backendHandle, own.handle, byteOffset, count, value));
  }

  /** Host to device. `host` must stay as it is until the stream has passed. */
  upload(buffer: DeviceBuffer, host: ArrayBufferView, byteOffset = 0): void {
    const own = requireOwn(buffer, 'buffer', bufferKind, this.communicator);
    const bytes = hostBytes('host', host);
    requireRange(hostRange, byteOffset, bytes.byteLength, own.bytes);
    check(this.#runtime, this.#runtime.enqueueUpload(this.backendHandle, own.handle, byteOffset, bytes));
  }

  /** Device to host. `host` is filled once the stream has passed. */
  download(host: ArrayBufferView, buffer: DeviceBuffer, byteOffset = 0): void {
    const own = requireOwn(buffer, 'buffer', bufferKind, this.communicator);
    const bytes = hostBytes('host', host);
    requireRange(hostRange, byteOffset, bytes.byteLength, own.bytes);
    check(this.#runtime, this.#runtime.enqueueDownload(this.backendHandle, bytes, own.handle, byteOffset));
  }

  /**
   * Calls `run` in stream order on the thread that made the world; inside {@link capture} it becomes part of the graph and is called at each
   * launch. The stream stands still until `run` has returned and a promise from it has settled; other ranks go on. If it throws, the next
   * synchronize rejects with ERR_HOST_CALL and the error as `cause`; the stream goes on and its rank stays usable. Embedded backend only
   * (ERR_UNSUPPORTED elsewhere). Do not await this stream inside `run`: it would wait for itself.
   *
   * @example
   * ```ts
   * const input = comm.allocate(16);
   * stream.fill(input, 1);
   * stream.callHost(() => input.view('u8').fill(2, 0, 8));
   * await stream.synchronize();
   * ```
   */
  callHost(run: () => void | Promise<void>): void {
    requireFunction('run', run);
    check(this.#runtime, this.#runtime.enqueueHostCall(this.backendHandle, run));
  }

  /**
   * Records what `record` enqueues on this stream instead of running it.
   *
   * @example
   * ```ts
   * const graph = stream.capture(() => transfer.enqueue(stream));
   * for (let step = 0; step < 100; step++) stream.launch(graph);
   * await stream.synchronize();
   * ```
   */
  capture(record: () => void): Graph {
    requireFunction('record', record);
    check(this.#runtime, this.#runtime.beginCapture(this.backendHandle));
    try {
      refusePromise(record());
    } catch (error) {
      // The stream must leave capture; what was recorded is of no use.
      const partial = this.#runtime.endCapture(this.#handle);
      if (partial.ok) this.#runtime.freeGraph(partial.value);
      throw error;
    }
    return new Graph(this.communicator, this.#runtime, unwrap(this.#runtime.endCapture(this.#handle)));
  }

  /** Runs a recorded graph; counts as one operation. */
  launch(graph: Graph): void {
    const { handle } = requireOwn(graph, 'graph', graphKind, this.communicator);
    check(this.#runtime, this.#runtime.launchGraph(handle, this.backendHandle));
  }

  /** @internal Waits for everything enqueued; an error that nobody will synchronize for is published instead of lost. */
  async finish(): Promise<void> {
    const outcome = await this.#runtime.synchronize(this.#handle);
    if (outcome.ok) return;
    publish('rank.error', () => ({ rank: this.communicator.rank, error: errorFrom(outcome.error) }));
  }

  protected override drain(): Promise<void> {
    return this.finish();
  }

  protected override release(): void {
    check(this.#runtime, this.#runtime.freeStream(this.#handle));
  }

  #rangeOf(
    range: BufferRange,
    field: string,
    bytes: number,
  ): { readonly handle: BufferHandle; readonly byteOffset: number } {
    const own = requireOwn(range?.buffer, `${field}.buffer`, bufferKind, this.communicator);
    const byteOffset = range.byteOffset ?? 0;
    requireRange({ byteOffset: `${field}.byteOffset`, bytes: 'bytes' }, byteOffset, bytes, own.bytes);
    return { handle: own.handle, byteOffset };
  }
}

const ownRange = { byteOffset: 'byteOffset', bytes: 'bytes' } as const;
const hostRange = { byteOffset: 'byteOffset', bytes: 'host' } as const;

/** What makes a value a stream, for `requireOwn`. */
export const streamKind: {
  readonly type: typeof Stream;
  readonly name: string;
  readonly madeBy: string;
} = { type: Stream, name: 'a stream', madeBy: 'communicator.createStream' };

const graphKind = { type: Graph, name: 'a graph', madeBy: 'stream.capture' } as const;

// What an async function enqueues after its first await would run, unrecorded.
function refusePromise(result: unknown): void {
  if (!(result instanceof Promise)) return;
  result.catch(() => {});
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    'record returned a promise; a capture ends when it returns.',
    {
      field: 'record',
      help: 'Pass a function that enqueues synchronously, and await before or after the capture.',
    },
  );
}
