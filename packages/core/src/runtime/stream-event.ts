// SPDX-License-Identifier: Apache-2.0
// Marks in streams: order work between streams, and measure time on the device.

import type { EventHandle, RuntimeSpi } from '../contract/index.js';
import type { Communicator } from './communicator.js';
import { requireLocal } from './require-own.js';
import { Resource } from './resource.js';
import { check, unwrap } from './unwrap.js';

/** A mark that {@link Stream.record} sets, made by {@link Communicator.createEvent}. */
export class StreamEvent extends Resource {
  readonly communicator: Communicator;
  readonly #runtime: RuntimeSpi;
  readonly #handle: EventHandle;

  /** @internal Use `communicator.createEvent`. */
  constructor(communicator: Communicator, runtime: RuntimeSpi, handle: EventHandle) {
    super('event', communicator);
    this.communicator = communicator;
    this.#runtime = runtime;
    this.#handle = handle;
  }

  /** @internal The backend's handle. */
  get handle(): EventHandle {
    this.assertUsable();
    return this.#handle;
  }

  /** Whether the most recent record has been reached. */
  get reached(): boolean {
    return unwrap(this.#runtime.queryEvent(this.handle));
  }

  /** Resolves when the most recent record has been reached. */
  async synchronize(): Promise<void> {
    unwrap(await this.#runtime.synchronizeEvent(this.handle));
  }

  /** Milliseconds from `start` to this event; both must have been reached. */
  elapsedMs(start: StreamEvent): number {
    const own = requireLocal(start, 'start', eventKind, this.communicator);
    return unwrap(this.#runtime.elapsedMs(own.handle, this.handle));
  }

  protected override release(): void {
    check(this.#runtime, this.#runtime.freeEvent(this.#handle));
  }
}

/** What makes a value an event, for `requireOwn`. */
export const eventKind: {
  readonly type: typeof StreamEvent;
  readonly name: string;
  readonly madeBy: string;
} = { type: StreamEvent, name: 'an event', madeBy: 'communicator.createEvent' };
