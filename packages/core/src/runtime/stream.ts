// SPDX-License-Identifier: Apache-2.0
// An in-order queue of device work. Enqueueing returns at once; `await synchronize()` is where time passes.

import type { RuntimeSpi, StreamHandle } from '../contract/index.js';
import { publish } from '../observe/channels.js';
import type { Communicator } from './communicator.js';
import type { DeviceBuffer } from './device-buffer.js';
import { Graph } from './graph.js';
import { Resource } from './resource.js';
import type { StreamEvent } from './stream-event.js';
import { check, errorFrom, unwrap } from './unwrap.js';

/** A range of device memory; `byteOffset` defaults to 0. */
export interface BufferRange {
  readonly buffer: DeviceBuffer;
  readonly byteOffset?: number;
}

/**
 * A stream of one rank, made by {@link Communicator.createStream}. It holds at most 256 unfinished operations; one more is
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

  /** @internal The backend's handle. */
  get handle(): StreamHandle {
    this.assertUsable();
    return this.#handle;
  }

  /** Unfinished operations, 0 to 256. */
  get queued(): number {
    return this.#runtime.queued(this.handle);
  }

  /** Resolves when everything enqueued so far is done; rejects with the first error since the last synchronize. */
  async synchronize(): Promise<void> {
    unwrap(await this.#runtime.synchronize(this.handle));
  }

  record(event: StreamEvent): void {
    check(this.#runtime, this.#runtime.recordEvent(event.handle, this.handle));
  }

  /** Later work waits for the most recent record of `event`; the event may belong to another rank of this process. */
  wait(event: StreamEvent): void {
    check(this.#runtime, this.#runtime.waitEvent(this.handle, event.handle));
  }

  /** Work after it starts when every rank's stream has come to its own barrier. */
  barrier(): void {
    check(this.#runtime, this.#runtime.enqueueBarrier(this.handle));
  }

  /** Copies `bytes` bytes between buffers of this rank; ranges must not overlap. */
  copy(destination: BufferRange, source: BufferRange, bytes: number): void {
    check(
      this.#runtime,
      this.#runtime.enqueueCopy(
        this.handle,
        destination.buffer.handle,
        destination.byteOffset ?? 0,
        source.buffer.handle,
        source.byteOffset ?? 0,
        bytes,
      ),
    );
  }

  /** Sets bytes to `value` (0 to 255), to the end of the buffer unless `bytes` is given. */
  fill(buffer: DeviceBuffer, value: number, byteOffset = 0, bytes: number = buffer.bytes - byteOffset): void {
    check(this.#runtime, this.#runtime.enqueueFill(this.handle, buffer.handle, byteOffset, bytes, value));
  }

  /** Host to device. `host` must stay as it is until the stream has passed. */
  upload(buffer: DeviceBuffer, host: ArrayBufferView, byteOffset = 0): void {
    check(this.#runtime, this.#runtime.enqueueUpload(this.handle, buffer.handle, byteOffset, bytesOf(host)));
  }

  /** Device to host. `host` is filled once the stream has passed. */
  download(host: ArrayBufferView, buffer: DeviceBuffer, byteOffset = 0): void {
    check(
      this.#runtime,
      this.#runtime.enqueueDownload(this.handle, bytesOf(host), buffer.handle, byteOffset),
    );
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
    check(this.#runtime, this.#runtime.beginCapture(this.handle));
    try {
      record();
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
    check(this.#runtime, this.#runtime.launchGraph(graph.handle, this.handle));
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
}

function bytesOf(host: ArrayBufferView): Uint8Array {
  return new Uint8Array(host.buffer, host.byteOffset, host.byteLength);
}
