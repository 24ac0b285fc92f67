// SPDX-License-Identifier: Apache-2.0
// The workers of a world and of all worlds split from it: who serves them, how their messages find their world, and how a split world
// leaves without a worker in it.

import type { ErrorRecord } from '../../contract/index.js';
import { wake } from '../control/wake.js';
import { maxSplits, splitEntry, splitWord, worldWord } from '../control/world-layout.js';
import type { Space } from '../memory/space.js';
import type { WorkerMessage, WorldMessage } from '../worker/task.js';
import { errorRecord } from './errors.js';
import type { Lease, WorkerPool } from './worker-pool.js';

/** A world as its crew sees it. */
interface Member {
  onMessage(message: WorldMessage): void;
  /** Nothing works any more. */
  fail(reason: ErrorRecord): void;
}

/** Where the first world of the family lies. */
interface Root {
  readonly ranks: number;
  readonly address: number;
  readonly space: Space;
  /** First word. */
  readonly base: number;
}

/** A place in the table of split worlds. */
export interface SplitPlace {
  readonly entry: number;
  readonly id: number;
}

export class Crew {
  readonly root: Root;
  readonly #members = new Map<number, Member>();
  readonly #entries = new Set<number>();
  readonly #deferred: { readonly idle: () => boolean; readonly free: () => void }[] = [];
  #leases: readonly Lease[] = [];
  #pending = 0;
  #lastId = 0;
  #failure: ErrorRecord | undefined;

  constructor(root: Root, member: Member) {
    this.root = root;
    this.#members.set(0, member);
  }

  /** Starts workers. Rejects when there are no threads to have. */
  async start(pool: WorkerPool, workers: number): Promise<void> {
    this.#leases = await pool.lease(workers, {
      onMessage: (message) => this.#onMessage(message),
      onDeath: (cause) => this.#onDeath(cause),
    });
    this.#leases.forEach((lease, worker) => {
      lease.attach({ address: this.root.address, worker });
    });
  }

  wake(): void {
    wake(this.root.space.i32, this.root.base);
  }

  /** Somebody begins to wait: the process stays alive until as many calls of `release` have come. */
  hold(): void {
    if (this.#pending++ === 0) for (const lease of this.#leases) lease.hold(true);
  }

  release(): void {
    if (--this.#pending === 0) for (const lease of this.#leases) lease.hold(false);
  }

  /** Resolves when no worker touches any world of the family any more. */
  async leave(): Promise<void> {
    Atomics.store(this.root.space.i32, this.root.base + worldWord.closing, 1);
    this.wake();
    for (const lease of this.#leases) lease.hold(true);
    await Promise.all(this.#leases.map((lease) => lease.left));
    this.#leases = [];
  }

  /** Whether `count` more split worlds have a place. */
  hasRoom(count: number): boolean {
    return this.#entries.size + count <= maxSplits;
  }

  /** Workers serve the split world whose region starts at `address` from now on; there must be room. */
  admit(address: number, member: Member): SplitPlace {
    const { space, base, ranks } = this.root;
    let index = 0;
    while (this.#entries.has(index)) index++;
    this.#entries.add(index);
    const entry = base + splitEntry(ranks, index);
    const id = ++this.#lastId;
    this.#members.set(id, member);
    space.f64[entry / 2 + splitWord.regionF64] = address;
    // Workers read the rest only after they have seen the number.
    Atomics.store(space.i32, entry + splitWord.id, id);
    if (index >= Atomics.load(space.i32, base + worldWord.splits))
      Atomics.store(space.i32, base + worldWord.splits, index + 1);
    return { entry: index, id };
  }

  /** Resolves when no worker touches the split world any more. A visit takes about a millisecond. */
  async dismiss(place: SplitPlace): Promise<void> {
    const { space, base, ranks } = this.root;
    const entry = base + splitEntry(ranks, place.entry);
    Atomics.store(space.i32, entry + splitWord.id, 0);
    while (this.#leases.length > 0 && Atomics.load(space.i32, entry + splitWord.visitors) > 0) {
      if (this.#failure !== undefined) await this.leave();
      else await new Promise((resolve) => setTimeout(resolve, 1));
    }
    this.#members.delete(place.id);
    this.#entries.delete(place.entry);
  }

  /** Frees something as soon as no queued operation refers to it. */
  defer(idle: () => boolean, free: () => void): void {
    if (idle()) free();
    else this.#deferred.push({ idle, free });
  }

  /** Frees what has become idle, and what that in turn makes idle. */
  sweep(): void {
    for (;;) {
      const index = this.#deferred.findIndex(({ idle }) => idle());
      if (index < 0) return;
      this.#deferred.splice(index, 1)[0]!.free();
    }
  }

  /** Ends the family: nothing may be in use. */
  async close(): Promise<void> {
    await this.leave();
    while (this.#deferred.length > 0) this.#deferred.pop()!.free();
  }

  #onMessage(message: WorkerMessage): void {
    // A message may still be on its way when its world has closed.
    if (message.kind === 'world') this.#members.get(message.split)?.onMessage(message.message);
  }

  #onDeath(cause: Error): void {
    this.#failure ??= errorRecord(
      'ERR_INTERNAL',
      'worker',
      `a worker thread of the embedded backend died: ${cause.message}`,
      {
        help: 'Dispose the world and make a new one; please report what led to this.',
      },
    );
    Atomics.store(this.root.space.i32, this.root.base + worldWord.closing, 1);
    this.wake();
    for (const member of [...this.#members.values()]) member.fail(this.#failure);
  }
}
