// SPDX-License-Identifier: Apache-2.0
// Device memory of one rank.

import type { BufferHandle, MemoryKind, MemoryShare, RuntimeSpi } from '../contract/index.js';
import type { DType } from '../dtype/dtype.js';
import type { TypedArrayOf } from '../dtype/typed-array.js';
import type { Communicator } from './communicator.js';
import { viewOf } from './host-view.js';
import { Resource } from './resource.js';
import { check, unwrap } from './unwrap.js';

/** Whose memory a buffer is: allocated here, of somebody else in this process (`wrapped`), or of another process (`imported`). */
export type BufferKind = MemoryKind | 'wrapped' | 'imported';

/**
 * `bytes` bytes of device memory, made by {@link Communicator.allocate} (256-byte aligned), {@link Communicator.wrapMemory} or
 * {@link Communicator.importMemory}. 64-bit sizes.
 *
 * @example
 * ```ts
 * const buffer = comm.allocate(1024);
 * buffer.view('f32').fill(1); // embedded backend; elsewhere stream.upload(buffer, bytes)
 * await buffer.dispose();
 * ```
 */
export class DeviceBuffer extends Resource {
  readonly communicator: Communicator;
  readonly bytes: number;
  readonly kind: BufferKind;
  readonly #runtime: RuntimeSpi;
  readonly #handle: BufferHandle;

  /** @internal Use `communicator.allocate`. */
  constructor(
    communicator: Communicator,
    runtime: RuntimeSpi,
    handle: BufferHandle,
    bytes: number,
    kind: BufferKind,
  ) {
    super('buffer', communicator);
    this.communicator = communicator;
    this.bytes = bytes;
    this.kind = kind;
    this.#runtime = runtime;
    this.#handle = handle;
  }

  /** Device address; on the embedded backend a unique number of the same kind. */
  get address(): bigint {
    return this.#runtime.bufferAddress(this.handle);
  }

  /** @internal The backend's handle. */
  get handle(): BufferHandle {
    this.assertUsable();
    return this.#handle;
  }

  /**
   * A typed array over the memory itself, on backends whose memory the host can see (embedded). f16, bf16 and fp8 come as
   * their bits. Reading while a stream writes sees whatever is there: synchronize first.
   *
   * Errors: ERR_UNSUPPORTED elsewhere, ERR_OUT_OF_BOUNDS, ERR_VIEW_TOO_LARGE above 2^32 elements.
   */
  view<D extends DType>(dtype: D, byteOffset = 0, length?: number): TypedArrayOf<D> {
    return viewOf(unwrap(this.#runtime.mapBuffer(this.handle)), this.bytes, dtype, byteOffset, length);
  }

  /**
   * How another process opens this memory with {@link Communicator.importMemory}. Send it by whatever connects the processes; file
   * descriptors stay open until the buffer is disposed, and the buffer must outlive every import of it.
   *
   * Errors: ERR_UNSUPPORTED for memory that cannot be shared, and on the embedded backend.
   *
   * @example
   * ```ts
   * if (comm.device.multiprocessors > 0) {
   *   const share = buffer.share(); // in one process
   *   const imported = comm.importMemory(share); // in another one on the same host
   *   await imported.dispose();
   * }
   * ```
   */
  share(): MemoryShare {
    return unwrap(this.#runtime.exportMemory(this.handle));
  }

  protected override release(): void {
    check(this.#runtime, this.#runtime.freeBuffer(this.#handle));
  }
}

/** What makes a value a buffer, for `requireOwn`. */
export const bufferKind: {
  readonly type: typeof DeviceBuffer;
  readonly name: string;
  readonly madeBy: string;
} = { type: DeviceBuffer, name: 'a buffer', madeBy: 'communicator.allocate' };
