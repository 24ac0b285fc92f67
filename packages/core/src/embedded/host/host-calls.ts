// SPDX-License-Identifier: Apache-2.0
// Calls that run on the thread that owns the world when a stream reaches them: they touch memory that workers cannot see.

import type { ErrorRecord } from '../../contract/index.js';

/** Runs in stream order; an error record becomes the stream's error. The stream stands still until a promise has settled. */
export type HostCall = () => ErrorRecord | undefined | Promise<ErrorRecord | undefined>;

/** The calls that operations of one world refer to by number. */
export class HostCalls {
  readonly #calls = new Map<number, { readonly call: HostCall; readonly kept: boolean }>();
  #next = 1;

  /** `kept` calls belong to a graph and run until they are released; others run once. */
  add(call: HostCall, kept: boolean): number {
    const id = this.#next++;
    this.#calls.set(id, { call, kept });
    return id;
  }

  run(id: number): ReturnType<HostCall> {
    const entry = this.#calls.get(id);
    this.drop(id);
    return entry?.call();
  }

  /** Forgets a call that will not run, unless a graph keeps it. */
  drop(id: number): void {
    if (this.#calls.get(id)?.kept === false) this.#calls.delete(id);
  }

  /** Forgets a call of a graph that is freed. */
  release(id: number): void {
    this.#calls.delete(id);
  }

  /** Calls that are remembered. */
  get size(): number {
    return this.#calls.size;
  }
}
