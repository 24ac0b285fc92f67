// SPDX-License-Identifier: Apache-2.0
// Memory that every rank of a communicator can address.

import type { RuntimeSpi, WindowHandle, WindowPeers } from '../contract/index.js';
import type { DType } from '../dtype/dtype.js';
import type { TypedArrayOf } from '../dtype/typed-array.js';
import type { Communicator } from './communicator.js';
import type { DeviceBuffer } from './device-buffer.js';
import { Resource } from './resource.js';
import { check, unwrap } from './unwrap.js';

/**
 * A buffer registered on all ranks together, made by {@link Communicator.registerWindow}. It keeps its buffer busy until disposed.
 * `dispose` rejects with ERR_BUSY while unfinished work or a graph uses that buffer, because kernels may still read the table of
 * peers: synchronize the streams and dispose the graphs, then dispose the window again. Dispose it on every rank once no rank's
 * work writes to the others' parts any more.
 */
export class Window extends Resource {
  readonly buffer: DeviceBuffer;
  readonly #runtime: RuntimeSpi;
  readonly #handle: WindowHandle;
  #peers: WindowPeers | undefined;

  /** @internal Use `communicator.registerWindow`. */
  constructor(buffer: DeviceBuffer, runtime: RuntimeSpi, handle: WindowHandle) {
    super('window', buffer);
    this.buffer = buffer;
    this.#runtime = runtime;
    this.#handle = handle;
  }

  get communicator(): Communicator {
    return this.buffer.communicator;
  }

  /**
   * Where this rank reaches every rank's part: `addresses` by rank (0n where only a network leads to it), and `table`, the device address
   * of the same pointers, for kernels. On the embedded backend, which runs no kernels, `table` is 0n.
   *
   * @example
   * ```ts
   * const window = await comm.registerWindow(comm.allocate(1024));
   * window.peers.addresses[comm.rank] === window.buffer.address; // true
   * await window.dispose();
   * ```
   */
  get peers(): WindowPeers {
    this.assertUsable();
    this.#peers ??= unwrap(this.#runtime.windowPeers(this.#handle));
    return this.#peers;
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

/** What makes a value a window, for `requireOwn`. */
export const windowKind: {
  readonly type: typeof Window;
  readonly name: string;
  readonly madeBy: string;
} = { type: Window, name: 'a window', madeBy: 'communicator.registerWindow' };
