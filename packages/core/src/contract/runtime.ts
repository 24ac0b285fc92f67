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
export type ModuleHandle = number;
export type KernelHandle = number;

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
  /** SMs that one rank's operations may hold at a time: for all ranks, or by rank; 0 lets the backend choose. */
  readonly sms: number | readonly number[];
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
  /** Of this rank, as in {@link LocalRanksConfig}; ranks need not agree. */
  readonly sms: number;
}

export interface DeviceInfo {
  readonly index: number;
  readonly name: string;
  /** The GPU's UUID as `GPU-` and hex; empty on the embedded backend. */
  readonly uuid: string;
  /** 0 on the embedded backend. */
  readonly multiprocessors: number;
  /** Ranks of this world on this device. */
  readonly ranks: number;
  /**
   * SMs that all operations in flight of this rank may hold: floor(0.8 x multiprocessors / ranks) unless asked otherwise, at least 1.
   * Where a rank asked, those of all ranks on the device are together at most `multiprocessors`: else no rank is made. Kernels that wait for peers must all be resident. 0 on the embedded backend.
   */
  readonly smBudget: number;
}

/** A rank's end of a communicator that {@link RuntimeSpi.splitRank} made. */
export interface SplitRank {
  readonly handle: RankHandle;
  readonly rank: number;
  readonly size: number;
}

/** `symmetric` memory can become a window; `plain` memory need not be able to. */
export type MemoryKind = 'plain' | 'symmetric';

/**
 * How another process opens memory. `ipc`: cudaMalloc memory, by its 64-byte CUDA IPC handle. `fd`: a VMM allocation of `allocationBytes` bytes, by
 * a POSIX file descriptor of `processId` (absent: of the importing process, as after SCM_RIGHTS). The range starts `byteOffset` bytes into the
 * allocation.
 */
export type MemoryShare =
  | {
      readonly kind: 'ipc';
      readonly handle: Uint8Array;
      readonly byteOffset: number;
      readonly bytes: number;
    }
  | {
      readonly kind: 'fd';
      readonly fd: number;
      readonly processId?: number;
      readonly allocationBytes: number;
      readonly byteOffset: number;
      readonly bytes: number;
    };

/** Where a rank reaches every rank's part of a window. */
export interface WindowPeers {
  /** Device address of `size` 64-bit base pointers, by rank; it lives as long as the window. */
  readonly table: bigint;
  /** The same pointers; 0 where a rank is reached by a network only. */
  readonly addresses: readonly bigint[];
}

/** One launch of a kernel of the user's. */
export interface KernelLaunch {
  readonly grid: readonly [number, number, number];
  readonly block: readonly [number, number, number];
  /** Dynamic shared memory in bytes. */
  readonly sharedBytes: number;
  /** All parameters, each aligned to its size, as the kernel reads them. */
  readonly parameters: Uint8Array;
  /** Where each parameter starts in `parameters`, ascending; compared with the kernel's own table where the driver tells it. */
  readonly offsets: Int32Array;
  /** Where the backend writes a `KernelGuard` (contract/kernel-guard.ts); -1: nowhere. */
  readonly guardOffset: number;
  /** Buffers that the kernel uses: busy until it has passed. */
  readonly buffers: readonly BufferHandle[];
}

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
  /** What the communicator can do, for `doctor`: LSA teams, GIN type, multicast, host RMA. Keys are the backend's own. */
  factsOf(rank: RankHandle): Readonly<Record<string, string>>;
  /**
   * Collective: ranks of one `color` (at least 0) form a new communicator, ordered by `key`, then by rank. Color -1 takes part and gets
   * undefined. The new ranks are disposed before their parent, and a poisoned one leaves its parent usable.
   */
  splitRank(rank: RankHandle, color: number, key: number): Promise<Outcome<SplitRank | undefined>>;
  /**
   * All-gather of small payloads over all ranks. The k-th exchange of each rank matches the k-th of every other one;
   * `topic` is compared too: different topics are ERR_DISAGREEMENT on every rank. A rank that does not come: ERR_TIMEOUT naming it.
   */
  exchange(rank: RankHandle, topic: string, payload: Uint8Array): Promise<Outcome<readonly Uint8Array[]>>;

  allocate(rank: RankHandle, bytes: number, kind: MemoryKind): Outcome<BufferHandle>;
  /** Memory of somebody else on this rank's device, whose owner keeps it alive; freeing the buffer frees nothing. */
  wrapMemory(rank: RankHandle, address: bigint, bytes: number): Outcome<BufferHandle>;
  /** How another process opens this buffer; ERR_UNSUPPORTED for memory that cannot be shared. File descriptors stay open until the buffer is freed. */
  exportMemory(buffer: BufferHandle): Outcome<MemoryShare>;
  /** Opens memory that another process exported. It can be read and written, but never becomes a window. */
  importMemory(rank: RankHandle, share: MemoryShare): Outcome<BufferHandle>;
  /** ERR_BUSY while a window, a transfer, a graph (from the moment it is recorded) or queued work uses it. */
  freeBuffer(buffer: BufferHandle): Status;
  bufferAddress(buffer: BufferHandle): bigint;
  /** Host view of device memory where there is one (embedded); ERR_UNSUPPORTED elsewhere. */
  mapBuffer(buffer: BufferHandle): Outcome<HostView>;
  memoryUsage(): MemoryUsage;
  /** Bytes that are free on the rank's device now, whoever may take them next; on the embedded backend those of this machine. */
  availableMemoryOf(rank: RankHandle): Outcome<number>;
  /** Collective: the i-th window of each rank form one window object. Sizes may differ between ranks. */
  registerWindow(rank: RankHandle, buffer: BufferHandle): Promise<Outcome<WindowHandle>>;
  /** ERR_BUSY while queued work or a graph uses its buffer: kernels may still read the table of peers. */
  freeWindow(window: WindowHandle): Status;
  windowPeers(window: WindowHandle): Outcome<WindowPeers>;

  createStream(rank: RankHandle): Outcome<StreamHandle>;
  /** A stream of somebody else on this rank's device: its own work and ours run in order. Freeing it leaves the stream to its owner. */
  wrapStream(rank: RankHandle, address: bigint): Outcome<StreamHandle>;
  /** The driver's stream, for libraries that take one. */
  streamAddress(stream: StreamHandle): bigint;
  /** ERR_BUSY while work is unfinished. */
  freeStream(stream: StreamHandle): Status;
  /** Unfinished operations. */
  queued(stream: StreamHandle): number;
  /** Resolves when all work enqueued before the call is done, with the first error record since the last synchronize. */
  synchronize(stream: StreamHandle): Promise<Outcome<void>>;

  createEvent(rank: RankHandle): Outcome<EventHandle>;
  freeEvent(event: EventHandle): Status;
  recordEvent(event: EventHandle, stream: StreamHandle): Status;
  /**
   * Later work of `stream` waits for the most recent record of `event` before this call; an event never recorded is no wait. Streams of
   * different ranks of this process may wait for each other. A record that its rank drained, aborted or failed, is no work done: the wait
   * of another rank is ERR_RANK_LOST. A stream of CUDA goes on where a kernel found the failure and the record was drained
   * before the host noticed.
   */
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
  /**
   * Runs `call` in stream order on the thread that made the world, at each launch when a graph records it. The stream stands still until it
   * has returned, and until the promise that it may return has settled; other ranks and streams go on. What it throws becomes the stream's
   * error (ERR_HOST_CALL, with the cause), and the stream goes on. CUDA backends answer ERR_UNSUPPORTED.
   */
  enqueueHostCall(stream: StreamHandle, call: () => void | Promise<void>): Status;
  /** Work after it on this stream starts when every rank's stream has reached its own barrier. */
  enqueueBarrier(stream: StreamHandle): Status;

  /** Loads a cubin or PTX for this rank's device. On the rank's own thread: loading may wait while kernels of peers spin. */
  loadModule(rank: RankHandle, image: Uint8Array): Promise<Outcome<ModuleHandle>>;
  /** ERR_BUSY while a launch or a graph uses one of its kernels. */
  unloadModule(module: ModuleHandle): Status;
  /** ERR_INVALID_ARGUMENT when the module has no kernel of this name. The handle lives as long as its module. */
  kernelOf(module: ModuleHandle, name: string): Outcome<KernelHandle>;
  launchKernel(stream: StreamHandle, kernel: KernelHandle, launch: KernelLaunch): Status;
}
