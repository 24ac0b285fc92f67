// SPDX-License-Identifier: Apache-2.0
// The runtime part of the backend contract: ranks, memory, windows, streams, events, graphs. Plain data only.
//
// Rules for every backend (design, section 2):
//  - `enqueue*`, `record*`, `wait*` and `launch*` put work on a stream and return at once. They wait for nobody, make no
//    Promise and allocate no device memory. A stream holds at most 256 unfinished operations; one more is ERR_QUEUE_FULL.
//    While a stream records a graph nothing counts; one launch of a graph counts one.
//  - Collective host calls return a Promise. One thread may start the call of every local rank and then await them all.
//  - Nothing throws. A wait on the device has a deadline; on expiry the operation writes an error record and drains,
//    and the next `synchronize` of the stream hands the record out once.
//  - Handles are positive integers, unique within the backend for its lifetime: a stale handle is detected, never reused.

import type { ErrorRecord, Outcome, Status } from './outcome.js';

export type RankHandle = number;
export type BufferHandle = number;
export type WindowHandle = number;
export type StreamHandle = number;
export type EventHandle = number;
export type GraphHandle = number;

/** The most unfinished operations that one stream holds. */
export const maxQueuedOperations = 256;

/** Ranks that all live in this process. */
export interface LocalRanksConfig {
  readonly ranks: number;
  /** Device index per rank; the embedded backend has one device and ignores it. */
  readonly devices?: readonly number[];
  /** Deadline of every wait for a peer, in milliseconds. */
  readonly timeoutMs: number;
  /** Worker threads of the embedded backend; 0 lets it choose. */
  readonly workers: number;
}

/** This process is one rank of a world that a launcher made. */
export interface JoinConfig {
  readonly rank: number;
  readonly worldSize: number;
  readonly localRank: number;
  readonly localWorldSize: number;
  /** Host and port where rank 0 hands out the unique id. */
  readonly address: string;
  readonly port: number;
  /** Ranks whose token is another than rank 0's are turned away; absent: none is asked for. */
  readonly token?: string;
  readonly timeoutMs: number;
}

export interface DeviceInfo {
  readonly index: number;
  readonly name: string;
}

/** `symmetric` memory can become a window; `plain` memory need not be able to. */
export type MemoryKind = 'plain' | 'symmetric';

/** Host-visible bytes of a buffer. */
export interface HostView {
  readonly buffer: ArrayBufferLike;
  /** Where the asked range starts in `buffer`, in bytes. */
  readonly byteOffset: number;
}

export interface MemoryUsage {
  /** Bytes that live buffers hold. */
  readonly allocatedBytes: number;
  /** Bytes that the backend keeps for reuse, live ones included. */
  readonly reservedBytes: number;
}

export interface RuntimeSpi {
  /** The record behind the last non-zero Status of this thread. */
  lastError(): ErrorRecord;

  createLocalRanks(config: LocalRanksConfig): Promise<Outcome<readonly RankHandle[]>>;
  joinRank(config: JoinConfig): Promise<Outcome<RankHandle>>;
  /** Ends every wait of this rank with ERR_ABORTED and poisons it; peers time out on it or see ERR_RANK_LOST. */
  abortRank(rank: RankHandle, reason: string): Status;
  /** Waits for work in flight to drain (at most its deadline), then frees everything that belongs to the rank. */
  disposeRank(rank: RankHandle): Promise<Outcome<void>>;
  /** The record that poisoned this rank, or undefined while it is usable. */
  poisonOf(rank: RankHandle): ErrorRecord | undefined;
  deviceOf(rank: RankHandle): DeviceInfo;
  /**
   * All-gather of small payloads over all ranks. The k-th exchange of each rank matches the k-th of every other one;
   * `topic` is compared too: different topics are ERR_DISAGREEMENT on every rank. A rank that does not come: ERR_TIMEOUT naming it.
   */
  exchange(rank: RankHandle, topic: string, payload: Uint8Array): Promise<Outcome<readonly Uint8Array[]>>;

  allocate(rank: RankHandle, bytes: number, kind: MemoryKind): Outcome<BufferHandle>;
  /** ERR_BUSY while a window, a transfer or queued work uses it. */
  freeBuffer(buffer: BufferHandle): Status;
  bufferAddress(buffer: BufferHandle): bigint;
  /** Host view of device memory where there is one (embedded); ERR_UNSUPPORTED elsewhere. */
  mapBuffer(buffer: BufferHandle): Outcome<HostView>;
  memoryUsage(): MemoryUsage;
  /** Collective: the i-th window of each rank form one window object. Sizes may differ between ranks. */
  registerWindow(rank: RankHandle, buffer: BufferHandle): Promise<Outcome<WindowHandle>>;
  freeWindow(window: WindowHandle): Status;

  createStream(rank: RankHandle): Outcome<StreamHandle>;
  /** ERR_BUSY while work is unfinished. */
  freeStream(stream: StreamHandle): Status;
  /** Unfinished operations. */
  queued(stream: StreamHandle): number;
  /** Resolves when all work enqueued before the call is done, with the first error record since the last synchronize. */
  synchronize(stream: StreamHandle): Promise<Outcome<void>>;

  createEvent(rank: RankHandle): Outcome<EventHandle>;
  freeEvent(event: EventHandle): Status;
  recordEvent(event: EventHandle, stream: StreamHandle): Status;
  /** Later work of `stream` waits for the most recent record of `event` before this call; an event never recorded is no wait. Streams of different ranks of this process may wait for each other. */
  waitEvent(stream: StreamHandle, event: EventHandle): Status;
  /** Whether the most recent record has been reached. */
  queryEvent(event: EventHandle): Outcome<boolean>;
  synchronizeEvent(event: EventHandle): Promise<Outcome<void>>;
  /** Milliseconds between two reached records. */
  elapsedMs(start: EventHandle, end: EventHandle): Outcome<number>;

  /** From here on calls on `stream` are recorded, not run. */
  beginCapture(stream: StreamHandle): Status;
  endCapture(stream: StreamHandle): Outcome<GraphHandle>;
  launchGraph(graph: GraphHandle, stream: StreamHandle): Status;
  freeGraph(graph: GraphHandle): Status;

  /** Device to device, within one rank's buffers. Ranges of one buffer must not overlap. */
  enqueueCopy(
    stream: StreamHandle,
    destination: BufferHandle,
    destinationOffset: number,
    source: BufferHandle,
    sourceOffset: number,
    bytes: number,
  ): Status;
  /** Sets `bytes` bytes to `value` (0 to 255). */
  enqueueFill(
    stream: StreamHandle,
    buffer: BufferHandle,
    byteOffset: number,
    bytes: number,
    value: number,
  ): Status;
  /** Host to device, in stream order. `host` must stay as it is until the stream has passed. */
  enqueueUpload(stream: StreamHandle, buffer: BufferHandle, byteOffset: number, host: Uint8Array): Status;
  /** Device to host, in stream order. `host` is filled once the stream has passed. */
  enqueueDownload(stream: StreamHandle, host: Uint8Array, buffer: BufferHandle, byteOffset: number): Status;
  /** Work after it on this stream starts when every rank's stream has reached its own barrier. */
  enqueueBarrier(stream: StreamHandle): Status;
}
