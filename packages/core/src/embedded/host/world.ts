// SPDX-License-Identifier: Apache-2.0
// One embedded world, or one split from another, on the thread that owns it: its shared region and everything that waits for its workers.

import type { ErrorRecord } from '../../contract/index.js';
import { isReached, wantMessage } from '../control/event-cell.js';
import {
  maxSplits,
  rankEntry,
  rankWord,
  streamWord,
  worldBytes,
  worldWord,
} from '../control/world-layout.js';
import type { SharedEpGroup } from '../ep/ep-objects.js';
import { offsetOf } from '../memory/address.js';
import type { Arena } from '../memory/arena.js';
import type { Space } from '../memory/space.js';
import { poisonRank, poisonRecord, reportError } from '../worker/failure.js';
import type { WorldMessage } from '../worker/task.js';
import { Crew, type SplitPlace } from './crew.js';
import { errorRecord } from './errors.js';
import { type HostCall, HostCalls } from './host-calls.js';
import type { EventState, RankState, StreamState } from './objects.js';
import { Rendezvous } from './rendezvous.js';
import type { WorkerPool } from './worker-pool.js';

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
  /** Its workers, shared with the world that it was split from. */
  readonly crew: Crew;
  readonly calls: HostCalls = new HostCalls();
  readonly rendezvous: Rendezvous;
  /** Groups of expert parallelism that some rank holds. */
  readonly epGroups: Set<SharedEpGroup> = new Set();
  /** Set when a worker died: nothing works any more. */
  failure: ErrorRecord | undefined;
  readonly #events = new Map<number, EventState>();
  #place: SplitPlace | undefined;
  readonly #failListeners = new Set<() => void>();
  /** Streams that wait for a promise of a host call; a poisoned rank does not wait any longer. */
  readonly #pendingCalls = new Map<StreamState, (error: ErrorRecord | undefined) => void>();

  /** Undefined when the arena has no memory for it. */
  static open(arena: Arena, options: WorldOptions): World | undefined {
    const address = arena.allocateZeroed(worldBytes(options.ranks, maxSplits));
    return address === undefined ? undefined : new World(arena, options, address, undefined);
  }

  /** A world of `ranks` of this family that workers do not serve yet; undefined when the arena has no memory for it. */
  split(ranks: number): World | undefined {
    const address = this.arena.allocateZeroed(worldBytes(ranks, 0));
    return address === undefined
      ? undefined
      : new World(this.arena, { ...this.options, ranks }, address, this.crew);
  }

  private constructor(arena: Arena, options: WorldOptions, address: number, crew: Crew | undefined) {
    this.arena = arena;
    this.options = options;
    this.address = address;
    this.space = arena.space(address);
    this.base = offsetOf(address) / 4;
    this.space.i32[this.base + worldWord.ranks] = options.ranks;
    this.space.f64[this.base / 2 + worldWord.timeoutF64] = options.timeoutMs;
    const { space, base } = this;
    this.crew = crew ?? new Crew({ ranks: options.ranks, address, space, base }, this);
    this.rendezvous = new Rendezvous(options.ranks, options.timeoutMs, (rank, reason) =>
      this.poison(rank, reason),
    );
  }

  /** Starts workers. Rejects when there are no threads to have. */
  start(pool: WorkerPool): Promise<void> {
    return this.crew.start(pool, this.options.workers);
  }

  /** The workers of the family serve this split world from now on. */
  admit(): void {
    this.#place = this.crew.admit(this.address, this);
  }

  /** Lets the workers go and frees the region; nothing of the world may be in use. */
  async close(): Promise<void> {
    this.#pendingCalls.clear();
    if (this.crew.root.address === this.address) await this.crew.close();
    else if (this.#place !== undefined) await this.crew.dismiss(this.#place);
    this.arena.release(this.address);
  }

  wake(): void {
    this.crew.wake();
  }

  rankBase(rank: number): number {
    return this.base + rankEntry(rank);
  }

  /** The address of a rank's entry. */
  rankAddress(rank: number): number {
    return this.address + rankEntry(rank) * 4;
  }

  poison(rank: number, reason: ErrorRecord): void {
    poisonRank(this.space, this.rankBase(rank), reason);
    for (const [stream, release] of this.#pendingCalls) if (stream.owner.rank === rank) release(undefined);
    this.wake();
  }

  poisonOf(rank: number): ErrorRecord | undefined {
    return this.failure ?? poisonRecord(this.space, this.rankBase(rank));
  }

  /** `rank` comes to no more collective host calls. */
  leaveMeetings(rank: number, error: ErrorRecord, how: string): void {
    this.rendezvous.leave(rank, error, how);
    for (const { meeting } of this.epGroups) meeting.leave(rank, error);
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

  onMessage(message: WorldMessage): void {
    if (message.kind === 'stream') {
      const stream = this.streams[message.stream];
      if (stream !== undefined) this.#settleStream(stream);
    } else if (message.kind === 'event') {
      const event = this.#events.get(message.cell);
      if (event !== undefined) this.#settleEvent(event);
    } else if (message.kind === 'host') this.#runCall(message.stream, message.call);
    else this.calls.drop(message.call);
  }

  /** A worker died: everything that waits ends. */
  fail(reason: ErrorRecord): void {
    this.failure ??= reason;
    this.rendezvous.fail(this.failure);
    for (const settle of [...this.#failListeners]) settle();
  }

  /** A promise that keeps the process alive until it is settled, by whoever got `settle` or by the world's failure. */
  #wait(begin: (settle: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      const settle = (): void => {
        if (!this.#failListeners.delete(settle)) return;
        this.crew.release();
        resolve();
      };
      this.#failListeners.add(settle);
      this.crew.hold();
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

  /** Runs the call at the head of a suspended stream and lets the stream go on. */
  #runCall(slot: number, call: number): void {
    const stream = this.streams[slot];
    if (stream === undefined) return;
    const { rank } = stream.owner;
    const poisoned = Atomics.load(this.space.i32, this.rankBase(rank) + rankWord.poison) !== 0;
    if (poisoned) this.calls.drop(call);
    const result = poisoned ? undefined : this.#callSafely(call, rank);
    if (!(result instanceof Promise)) {
      this.#resume(stream, result);
      return;
    }
    // A promise alone does not keep the process alive.
    void this.#wait((settle) => {
      const release = (error: ErrorRecord | undefined): void => {
        if (!this.#pendingCalls.delete(stream)) return;
        this.#resume(stream, error);
        settle();
      };
      this.#pendingCalls.set(stream, release);
      result.then(release, (cause) => release(defect(cause, rank)));
    });
  }

  /** The call at the head of a suspended stream is over. */
  #resume(stream: StreamState, error: ErrorRecord | undefined): void {
    if (error !== undefined) {
      const { cause, ...record } = error;
      // The stream stands still, so whatever error it has is this one from here on, or an earlier one.
      if (reportError(stream.ring, stream.ringOffset, record)) stream.cause = cause;
    }
    Atomics.store(this.space.i32, stream.entry + streamWord.suspended, 0);
    this.wake();
  }

  /** A defect of a call must neither end the process nor leave its stream suspended. */
  #callSafely(call: number, rank: number): ReturnType<HostCall> {
    try {
      return this.calls.run(call);
    } catch (cause) {
      return defect(cause, rank);
    }
  }
}

function defect(cause: unknown, rank: number): ErrorRecord {
  return errorRecord('ERR_INTERNAL', 'host', `a host operation failed: ${String(cause)}`, { rank });
}
