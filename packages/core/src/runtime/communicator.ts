// SPDX-License-Identifier: Apache-2.0
// One rank's end of a group of ranks: its memory, streams and collective host calls.

import type { Backend, DeviceInfo, MemoryKind, RankHandle } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireText } from '../errors/require-kind.js';
import { describe } from '../mesh/require-integer.js';
import type { Topology } from '../topology/topology.js';
import { type AgreedFields, compareFields, requireFields } from './agreement.js';
import { bufferKind, DeviceBuffer } from './device-buffer.js';
import { requireOwn } from './require-own.js';
import { Resource } from './resource.js';
import { Stream } from './stream.js';
import { StreamEvent } from './stream-event.js';
import { check, errorFrom, unwrap } from './unwrap.js';
import { Window } from './window.js';

export type { AgreedFields };

/** A rank in a world. Made by `localWorld` (all ranks of this process) or `init` (one rank per process). */
export class Communicator extends Resource {
  readonly rank: number;
  /** Number of ranks. */
  readonly size: number;
  readonly topology: Topology;
  /** How long this rank waits for a peer, in milliseconds. */
  readonly timeoutMs: number;
  readonly #backend: Backend;
  readonly #handle: RankHandle;
  readonly #streams = new Set<Stream>();

  /** @internal Use `localWorld` or `init`. */
  constructor(
    parent: Resource | undefined,
    backend: Backend,
    handle: RankHandle,
    rank: number,
    topology: Topology,
    timeoutMs: number,
  ) {
    super('communicator', parent);
    this.rank = rank;
    this.size = topology.size;
    this.topology = topology;
    this.timeoutMs = timeoutMs;
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

  get device(): DeviceInfo {
    return this.#backend.runtime.deviceOf(this.handle);
  }

  /** Why this rank can no longer communicate (a lost peer, a timeout, an abort), or undefined. */
  get failure(): NcclExtError | undefined {
    const record = this.#backend.runtime.poisonOf(this.handle);
    return record === undefined ? undefined : errorFrom(record);
  }

  /** Device memory, not cleared. `symmetric` (the default) can become a window. ERR_OUT_OF_MEMORY carries the sizes. */
  allocate(bytes: number, kind: MemoryKind = 'symmetric'): DeviceBuffer {
    if (!Number.isSafeInteger(bytes) || bytes < 0) {
      throw new NcclExtError(
        'ERR_INVALID_ARGUMENT',
        `bytes must be an integer from 0 to 2^53 - 1, not ${describe(bytes)}.`,
        {
          field: 'bytes',
          seen: bytes,
        },
      );
    }
    if (kind !== 'symmetric' && kind !== 'plain') {
      throw new NcclExtError(
        'ERR_INVALID_ARGUMENT',
        `kind must be 'symmetric' or 'plain', not ${describe(kind)}.`,
        { field: 'kind', seen: kind },
      );
    }
    const { runtime } = this.#backend;
    return new DeviceBuffer(this, runtime, unwrap(runtime.allocate(this.handle, bytes, kind)), bytes);
  }

  createStream(): Stream {
    const { runtime } = this.#backend;
    const stream = new Stream(this, runtime, unwrap(runtime.createStream(this.handle)));
    for (const old of this.#streams) if (old.disposed) this.#streams.delete(old);
    this.#streams.add(stream);
    return stream;
  }

  createEvent(): StreamEvent {
    const { runtime } = this.#backend;
    return new StreamEvent(this, runtime, unwrap(runtime.createEvent(this.handle)));
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
    check(this.#backend.runtime, this.#backend.runtime.abortRank(this.handle, reason));
  }

  protected override async drain(): Promise<void> {
    await Promise.all(
      [...this.#streams].filter((stream) => !stream.disposed).map((stream) => stream.finish()),
    );
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
