// SPDX-License-Identifier: Apache-2.0
// One rank's end of a group of ranks: its memory, streams and collective host calls.

import type { Backend, DeviceInfo, MemoryKind, MemoryShare, RankHandle } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireText } from '../errors/require-kind.js';
import { describe, requireInteger } from '../mesh/require-integer.js';
import type { Options, TransferPathChoice } from '../options/option-table.js';
import type { Topology } from '../topology/topology.js';
import { type AgreedFields, compareFields, requireFields } from './agreement.js';
import { bufferKind, DeviceBuffer } from './device-buffer.js';
import { requireAddress, requireShare, requireStream } from './foreign-memory.js';
import { copyBytes } from './host-bytes.js';
import { KernelModule } from './kernel-module.js';
import { requireOwn } from './require-own.js';
import { Resource } from './resource.js';
import { type SplitOptions, splitRank } from './split.js';
import { Stream } from './stream.js';
import { StreamEvent } from './stream-event.js';
import { check, errorFrom, unwrap } from './unwrap.js';
import { Window } from './window.js';

export type { AgreedFields };

/** Options of a world that its ranks keep. */
export type RankOptions = Pick<Options, 'timeoutMs' | 'transferPath'>;

/** A rank in a world. Made by `localWorld` (all ranks of this process), `init` (one rank per process) or {@link Communicator.split}. */
export class Communicator extends Resource {
  readonly rank: number;
  /** Number of ranks. */
  readonly size: number;
  readonly topology: Topology;
  /** How long this rank waits for a peer, in milliseconds. */
  readonly timeoutMs: number;
  /** How its transfers exchange bytes where `prepareTransfer` is not told: the option transferPath. */
  readonly transferPath: TransferPathChoice;
  readonly #backend: Backend;
  readonly #handle: RankHandle;
  readonly #streams = new Set<Stream>();
  readonly #parts = new Set<Communicator>();

  /** @internal Use `localWorld` or `init`. */
  constructor(
    parent: Resource | undefined,
    backend: Backend,
    handle: RankHandle,
    rank: number,
    topology: Topology,
    { timeoutMs, transferPath }: RankOptions,
  ) {
    super('communicator', parent);
    this.rank = rank;
    this.size = topology.size;
    this.topology = topology;
    this.timeoutMs = timeoutMs;
    this.transferPath = transferPath;
    this.#backend = backend;
    this.#handle = handle;
  }

  /** @internal For packages that add operations: `backendOf` and `rankHandleOf` of `@nccl-ext/core/extend`. */
  get backend(): Backend {
    return this.#backend;
  }

  /** @internal The backend's handle. */
  get handle(): RankHandle {
    this.assertUsable();
    return this.#handle;
  }

  /** The GPU of this rank, and how many of its SMs all operations in flight of this rank may hold (`smBudget`). */
  get device(): DeviceInfo {
    return this.#backend.runtime.deviceOf(this.handle);
  }

  /** Bytes that are free on this rank's GPU now; other ranks and processes take from the same. On the embedded backend those of this machine. */
  get availableMemory(): number {
    return unwrap(this.#backend.runtime.availableMemoryOf(this.handle));
  }

  /** What the backend's communicator can do, in its own words; empty on the embedded backend. For people and `doctor`. */
  get facts(): Readonly<Record<string, string>> {
    return this.#backend.runtime.factsOf(this.handle);
  }

  /** Why this rank can no longer communicate (a lost peer, a timeout, an abort), or undefined. */
  get failure(): NcclExtError | undefined {
    const record = this.#backend.runtime.poisonOf(this.handle);
    return record === undefined ? undefined : errorFrom(record);
  }

  /** Device memory, not cleared. `symmetric` (the default) can become a window. ERR_OUT_OF_MEMORY carries the sizes. */
  allocate(bytes: number, kind: MemoryKind = 'symmetric'): DeviceBuffer {
    requireInteger('ERR_INVALID_ARGUMENT', 'bytes', bytes, 0);
    if (kind !== 'symmetric' && kind !== 'plain') {
      throw new NcclExtError(
        'ERR_INVALID_ARGUMENT',
        `kind must be 'symmetric' or 'plain', not ${describe(kind)}.`,
        { field: 'kind', seen: kind },
      );
    }
    const { runtime } = this.#backend;
    return new DeviceBuffer(this, runtime, unwrap(runtime.allocate(this.handle, bytes, kind)), bytes, kind);
  }

  /**
   * A buffer over memory on this rank's GPU that somebody else allocated and keeps alive longer than the buffer. Disposing the buffer
   * frees nothing. ERR_UNSUPPORTED on the embedded backend.
   *
   * @example
   * ```ts
   * if (comm.device.multiprocessors > 0) {
   *   const alias = comm.wrapMemory(buffer.address, buffer.bytes);
   *   stream.fill(alias, 0);
   * }
   * ```
   */
  wrapMemory(address: bigint, bytes: number): DeviceBuffer {
    const { runtime } = this.#backend;
    requireInteger('ERR_INVALID_ARGUMENT', 'bytes', bytes, 1);
    requireAddress('address', address, bytes);
    return new DeviceBuffer(
      this,
      runtime,
      unwrap(runtime.wrapMemory(this.handle, address, bytes)),
      bytes,
      'wrapped',
    );
  }

  /**
   * A buffer over memory that another process on this host shared with {@link DeviceBuffer.share}. It can be read and written, but never
   * becomes a window. ERR_UNSUPPORTED on the embedded backend.
   */
  importMemory(share: MemoryShare): DeviceBuffer {
    const { runtime } = this.#backend;
    const checked = requireShare(share);
    const handle = unwrap(runtime.importMemory(this.handle, checked));
    return new DeviceBuffer(this, runtime, handle, checked.bytes, 'imported');
  }

  createStream(): Stream {
    const { runtime } = this.#backend;
    return this.#keep(new Stream(this, runtime, unwrap(runtime.createStream(this.handle))));
  }

  /**
   * A stream of somebody else on this rank's GPU (CUstream), not one of the driver's default streams: its own work and ours run in
   * order. Disposing leaves it to its owner. ERR_UNSUPPORTED on the embedded backend.
   */
  wrapStream(handle: bigint): Stream {
    const { runtime } = this.#backend;
    const address = requireStream('handle', handle);
    return this.#keep(new Stream(this, runtime, unwrap(runtime.wrapStream(this.handle, address))));
  }

  createEvent(): StreamEvent {
    const { runtime } = this.#backend;
    return new StreamEvent(this, runtime, unwrap(runtime.createEvent(this.handle)));
  }

  /**
   * Loads kernels of yours, a cubin for this GPU or PTX. Load modules before work that waits for peers: loading may wait for the GPU.
   * ERR_MODULE when the driver refuses the image, ERR_UNSUPPORTED on the embedded backend.
   */
  async loadModule(image: Uint8Array | ArrayBuffer): Promise<KernelModule> {
    const { runtime } = this.#backend;
    const copy = copyBytes('image', image);
    return new KernelModule(this, runtime, unwrap(await runtime.loadModule(this.handle, copy)));
  }

  /**
   * Collective over this communicator: ranks that pass one color get a communicator of their own, with the parent's topology of just these
   * ranks; color -1 gets undefined. It has its own buffers, streams and failures: one that fails leaves this one usable. Disposing or
   * aborting this one does the same to it.
   *
   * @example
   * ```ts
   * const pairs = await comm.split({ color: Math.floor(comm.rank / 2) });
   * await pairs?.agree('step', { step: 1 });
   * await pairs?.dispose();
   * ```
   */
  async split(options: SplitOptions): Promise<Communicator | undefined> {
    const part = await splitRank(this, this.handle, options);
    for (const old of this.#parts) if (old.disposed) this.#parts.delete(old);
    if (part === undefined) return undefined;
    const { handle, rank, topology } = part;
    const communicator = new Communicator(this, this.#backend, handle, rank, topology, this);
    this.#parts.add(communicator);
    return communicator;
  }

  /** Collective: makes `buffer` addressable by every rank. All ranks register their windows in the same order. */
  async registerWindow(buffer: DeviceBuffer): Promise<Window> {
    const { runtime } = this.#backend;
    const own = requireOwn(buffer, 'buffer', bufferKind, this);
    const handle = unwrap(await runtime.registerWindow(this.handle, own.handle));
    return new Window(own, runtime, handle);
  }

  /** Collective: every rank's payload, by rank. Meant for small payloads (kilobytes). */
  async exchange(topic: string, payload: Uint8Array): Promise<readonly Uint8Array[]> {
    requireText('topic', topic);
    if (!(payload instanceof Uint8Array)) {
      throw new NcclExtError(
        'ERR_INVALID_ARGUMENT',
        `payload must be a Uint8Array, not ${describe(payload)}.`,
        { field: 'payload' },
      );
    }
    return unwrap(await this.#backend.runtime.exchange(this.handle, topic, payload));
  }

  /**
   * Collective: ERR_DISAGREEMENT on every rank unless all ranks pass the same fields with the same values; the message names
   * ranks and field.
   *
   * @example
   * ```ts
   * await comm.agree('training step', { step: 12, layout: plan.digest });
   * ```
   */
  async agree(topic: string, fields: AgreedFields): Promise<void> {
    requireText('topic', topic);
    requireFields(fields);
    const payloads = await this.exchange(`agree ${topic}`, new TextEncoder().encode(JSON.stringify(fields)));
    compareFields(topic, payloads.map(decodeFields));
  }

  /** Ends every wait of this rank with ERR_ABORTED; its peers learn of it as ERR_RANK_LOST. The communicator is unusable afterwards. */
  abort(reason: string): void {
    requireText('reason', reason);
    try {
      check(this.#backend.runtime, this.#backend.runtime.abortRank(this.handle, reason));
    } finally {
      for (const part of this.#parts) if (!part.disposed) part.abort(reason);
    }
  }

  #keep(stream: Stream): Stream {
    for (const old of this.#streams) if (old.disposed) this.#streams.delete(old);
    this.#streams.add(stream);
    return stream;
  }

  protected override async drain(): Promise<void> {
    await Promise.all(
      [...this.#streams].filter((stream) => !stream.disposed).map((stream) => stream.finish()),
    );
  }

  /** The end of a rank is the end of all that it has. */
  protected override get endsChildren(): boolean {
    return true;
  }

  protected override async release(): Promise<void> {
    unwrap(await this.#backend.runtime.disposeRank(this.#handle));
  }
}

function decodeFields(payload: Uint8Array): AgreedFields {
  const text = new TextDecoder().decode(payload);
  try {
    const fields: unknown = JSON.parse(text);
    if (typeof fields === 'object' && fields !== null) return fields as AgreedFields;
  } catch {
    // Not JSON: the peer sent something else, which the comparison shows.
  }
  return { payload: text };
}
