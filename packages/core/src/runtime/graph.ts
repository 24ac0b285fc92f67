// SPDX-License-Identifier: Apache-2.0
// A recorded sequence of operations that is launched as one.

import type { GraphHandle, RuntimeSpi } from '../contract/index.js';
import type { Communicator } from './communicator.js';
import { Resource } from './resource.js';
import { check } from './unwrap.js';

/** What {@link Stream.capture} recorded; launch it with {@link Stream.launch} as often as you like. */
export class Graph extends Resource {
  readonly communicator: Communicator;
  readonly #runtime: RuntimeSpi;
  readonly #handle: GraphHandle;

  /** @internal Use `stream.capture`. */
  constructor(communicator: Communicator, runtime: RuntimeSpi, handle: GraphHandle) {
    super('graph', communicator);
    this.communicator = communicator;
    this.#runtime = runtime;
    this.#handle = handle;
  }

  /** @internal The backend's handle. */
  get handle(): GraphHandle {
    this.assertUsable();
    return this.#handle;
  }

  protected override release(): void {
    check(this.#runtime, this.#runtime.freeGraph(this.#handle));
  }
}
