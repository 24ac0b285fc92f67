// SPDX-License-Identifier: Apache-2.0
// One embedded world on the thread that owns it: its shared region, its workers, and everything that waits for them.

import type { ErrorRecord } from '../../contract/index.js';
import { isReached, wantMessage } from '../control/event-cell.js';
import { wake } from '../control/wake.js';
import { rankEntry, rankWord, streamWord, worldBytes, worldWord } from '../control/world-layout.js';
import { offsetOf } from '../memory/address.js';
import type { Arena } from '../memory/arena.js';
import type { Space } from '../memory/space.js';
import { poisonRank, poisonRecord, reportError } from '../worker/failure.js';
import type { WorkerMessage } from '../worker/task.js';
import { errorRecord } from './errors.js';
import { HostCalls } from './host-calls.js';
import type { EventState, RankState, StreamState } from './objects.js';
import { Rendezvous } from './rendezvous.js';
import type { Lease, WorkerPool } from './worker-pool.js';

/** How a world is made. */
interface WorldOptions {
  readonly ranks: number;
  readonly timeoutMs: number;
  readonly workers: number;
}

export class World {
  readonly arena: Arena;
  readonly options: WorldOptions;
  /** The region, as a block, its address and its first word. */
  readonly space: Space;
  readonly address: number;
  readonly base: number;
  readonly ranks: RankState[] = [];
  /** Streams by their entry of the table. */
  readonly streams: (StreamState | undefined)[] = [];
  readonly calls: HostCalls = new HostCalls();
  readonly rendezvous: Rendezvous;
  /** Set when a worker died: nothing works any more. */
  failure: ErrorRecord | undefined;
  readonly #events = new Map<number, EventState>();
  readonly #deferred: { readonly idle: () => boolean; readonly free: () => void }[] = [];
  #leases: readonly Lease[] = [];
  #pending = 0;
  readonly #failListeners = new Set<() => void>();

  /** Undefined when the arena has no memory for it. */
  static open(arena: Arena, options: WorldOptions): World | undefined {
    const address = arena.allocateZeroed(worldBytes(options.ranks));
    return address === undefined ? undefined : new World(arena, options, address);
  }

  private constructor(arena: Arena, options: WorldOptions, address: number) {
    this.arena = arena;
    this.options = options;
    this.address = address;
    this.space = arena.space(address);
    this.base = offsetOf(address) / 4;
    this.space.i32[this.base + worldWord.ranks] = options.ranks;
    this.space.f64[this.base / 2 + worldWord.timeoutF64] = options.timeoutMs;
    this.rendezvous = new Rendezvous(options.ranks, options.timeoutMs, (rank, reason) =>
      this.poison(rank, reason),
    );
  }

  /** Starts workers. Rejects when there are no threads to have. */
  async start(pool: WorkerPool): Promise<void> {
    this.#leases = await pool.lease(this.options.workers, {
      onMessage: (message) => this.#onMessage(message),
      onDeath: (cause) => this.#onDeath(cause),
    });
    this.#leases.forEach((lease, worker) => {
      lease.attach({ address: this.address, worker });
    });
  }

  /** Lets the workers go and frees the region; nothing of the world may be in use. */
  async close(): Promise<void> {
    await this.leave();
    while (this.#deferred.length > 0) this.#deferred.pop()!.free();
    this.arena.release(this.address);
  }

  /** Resolves when no worker touches this world any more. */
  async leave(): Promise<void> {
    Atomics.store(this.space.i32, this.base + worldWord.closing, 1);
    this.wake();
    for (const lease of this.#leases) lease.hold(true);
    await Promise.all(this.#leases.map((lease) => lease.left));
    this.#leases = [];
  }

  wake(): void {
    wake(this.space.i32, this.base);
  }

  rankBase(rank: number): number {
    return this.base + rankEntry(rank);
  }

  poison(rank: number, reason: ErrorRecord): void {
    poisonRank(this.space, this.rankBase(rank), reason);
    this.wake();
  }

  poisonOf(rank: number): ErrorRecord | undefined {
    return this.failure ?? poisonRecord(this.space, this.rankBase(rank));
  }

  setRankWord(rank: number, word: number, value: number): void {
    Atomics.store(this.space.i32, this.rankBase(rank) + word, value);
    this.wake();
  }

  /** Operations that a stream has finished. */
  completed(stream: StreamState): number {
    const head = Atomics.load(this.space.i32, stream.entry + streamWord.head);
    return stream.enqueued - (((stream.enqueued | 0) - head) | 0);
  }

  /** Resolves when `ticket` operations of the stream have finished, or the world has failed. */
  reached(stream: StreamState, ticket: number): Promise<void> {
    if (this.failure !== undefined || stream.freed) return Promise.resolve();
    // Earlier callers end first, although the worker's message for them may still be on its way: errors go out in order.
    this.#settleStream(stream);
    if (this.completed(stream) >= ticket) return Promise.resolve();
    return this.#wait((settle) => {
      stream.waiters.push({ ticket, settle });
      stream.owner.standstill.await();
      this.#settleStream(stream);
    });
  }

  /** Resolves when a generation of the event was reached, or the world has failed. */
  eventReached(event: EventState, generation: number): Promise<void> {
    if (this.failure !== undefined || isReached(event.space, event.offset, generation))
      return Promise.resolve();
    return this.#wait((settle) => {
      event.waiters.push({ generation, settle });
      event.owner.standstill.await();
      this.#events.set(event.cell, event);
      this.#settleEvent(event);
    });
  }

  /** Whether the host waits for work of a rank. */
  isAwaited(rank: number): boolean {
    return (
      this.streams.some((stream) => stream?.owner.rank === rank && stream.waiters.length > 0) ||
      [...this.#events.values()].some((event) => event.owner.rank === rank)
    );
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

  /** A promise that keeps the process alive until it is settled, by whoever got `settle` or by the world's failure. */
  #wait(begin: (settle: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      const settle = (): void => {
        if (!this.#failListeners.delete(settle)) return;
        if (--this.#pending === 0) for (const lease of this.#leases) lease.hold(false);
        resolve();
      };
      this.#failListeners.add(settle);
      if (this.#pending++ === 0) for (const lease of this.#leases) lease.hold(true);
      begin(settle);
    });
  }

  /** Ends what is reached and asks for a message at the next ticket that somebody waits for. */
  #settleStream(stream: StreamState): void {
    const { i32 } = this.space;
    for (;;) {
      const done = this.completed(stream);
      const waiting = stream.waiters.splice(0);
      for (const waiter of waiting) {
        if (waiter.ticket <= done) waiter.settle();
        else stream.waiters.push(waiter);
      }
      if (stream.waiters.length === 0) return;
      const target = Math.min(...stream.waiters.map((waiter) => waiter.ticket));
      Atomics.store(i32, stream.entry + streamWord.target, target | 0);
      Atomics.store(i32, stream.entry + streamWord.wanted, 1);
      if (this.completed(stream) < target) return;
      // It was reached in between: if the worker has not seen the wish, it will not post.
      if (Atomics.compareExchange(i32, stream.entry + streamWord.wanted, 1, 0) === 0) return;
    }
  }

  #settleEvent(event: EventState): void {
    for (;;) {
      const waiting = event.waiters;
      event.waiters = [];
      for (const waiter of waiting) {
        if (isReached(event.space, event.offset, waiter.generation)) waiter.settle();
        else event.waiters.push(waiter);
      }
      if (event.waiters.length === 0) {
        this.#events.delete(event.cell);
        return;
      }
      wantMessage(event.space, event.offset);
      if (!event.waiters.some(({ generation }) => isReached(event.space, event.offset, generation))) return;
    }
  }

  #onMessage(message: WorkerMessage): void {
    if (message.kind === 'stream') {
      const stream = this.streams[message.stream];
      if (stream !== undefined) this.#settleStream(stream);
    } else if (message.kind === 'event') {
      const event = this.#events.get(message.cell);
      if (event !== undefined) this.#settleEvent(event);
    } else if (message.kind === 'host') this.#runCall(message.stream, message.call);
    else if (message.kind === 'dropped') this.calls.drop(message.call);
  }

  /** Runs the call at the head of a suspended stream and lets the stream go on. */
  #runCall(slot: number, call: number): void {
    const stream = this.streams[slot];
    if (stream === undefined) return;
    const { rank } = stream.owner;
    const poisoned = Atomics.load(this.space.i32, this.rankBase(rank) + rankWord.poison) !== 0;
    if (poisoned) this.calls.drop(call);
    const error = poisoned ? undefined : this.#callSafely(call, rank);
    if (error !== undefined) reportError(stream.ring, stream.ringOffset, error);
    Atomics.store(this.space.i32, stream.entry + streamWord.suspended, 0);
    this.wake();
  }

  /** A defect of a call must neither end the process nor leave its stream suspended. */
  #callSafely(call: number, rank: number): ErrorRecord | undefined {
    try {
      return this.calls.run(call);
    } catch (cause) {
      return errorRecord('ERR_INTERNAL', 'host', `a host operation failed: ${String(cause)}`, { rank });
    }
  }

  #onDeath(cause: Error): void {
    this.failure ??= errorRecord(
      'ERR_INTERNAL',
      'worker',
      `a worker thread of the embedded backend died: ${cause.message}`,
      {
        help: 'Dispose the world and make a new one; please report what led to this.',
      },
    );
    Atomics.store(this.space.i32, this.base + worldWord.closing, 1);
    this.wake();
    this.rendezvous.fail(this.failure);
    for (const settle of [...this.#failListeners]) settle();
  }
}
