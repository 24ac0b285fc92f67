// SPDX-License-Identifier: Apache-2.0
// Memory that every rank of a communicator can address.

import type { RuntimeSpi, WindowHandle } from '../contract/index.js';
import type { DType } from '../dtype/dtype.js';
import type { TypedArrayOf } from '../dtype/typed-array.js';
import type { DeviceBuffer } from './device-buffer.js';
import { Resource } from './resource.js';
import { check } from './unwrap.js';

/** A buffer registered on all ranks together, made by {@link Communicator.registerWindow}. It keeps its buffer busy until disposed. */
export class Window extends Resource {
  readonly buffer: DeviceBuffer;
  readonly #runtime: RuntimeSpi;
  readonly #handle: WindowHandle;

  /** @internal Use `communicator.registerWindow`. */
  constructor(buffer: DeviceBuffer, runtime: RuntimeSpi, handle: WindowHandle) {
    super('window', buffer);
    this.buffer = buffer;
    this.#runtime = runtime;
    this.#handle = handle;
  }

  get bytes(): number {
    return this.buffer.bytes;
  }

  /** As {@link DeviceBuffer.view}: this rank's part of the window. */
  view<D extends DType>(dtype: D, byteOffset = 0, length?: number): TypedArrayOf<D> {
    this.assertUsable();
    return this.buffer.view(dtype, byteOffset, length);
  }

  protected override release(): void {
    check(this.#runtime, this.#runtime.freeWindow(this.#handle));
  }
}
