// SPDX-License-Identifier: Apache-2.0
// Worker threads of this process. They outlive worlds: starting one takes some 20 ms and memory that Node never quite gives back.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { type Arena, maxWorkers, processArena } from '../memory/arena.js';
import type { WorkerMessage } from '../worker/task.js';
import type { AttachMessage, WorkerStart } from '../worker.js';

/** Idle workers that are kept; more are ended. */
const keptWorkers = 8;

/** A worker that serves a world. */
export interface Lease {
  /** Keeps the process alive while true. Workers start and rest without doing so. */
  hold(on: boolean): void;
  attach(message: AttachMessage): void;
  /** Resolves when the worker has left its world, or died. */
  readonly left: Promise<void>;
  readonly thread: Worker;
}

/** Hears what the workers of a world say. */
interface LeaseOwner {
  onMessage(message: WorkerMessage): void;
  onDeath(cause: Error): void;
}

interface PoolWorker {
  readonly thread: Worker;
  readonly slot: number;
  readonly port: MessagePort;
  owner: LeaseOwner | undefined;
  onLeft: () => void;
}

/** Hands workers to worlds. */
export class WorkerPool {
  readonly #arena: Arena;
  readonly #idle: PoolWorker[] = [];
  readonly #slots = new Set<number>();
  readonly #all = new Set<PoolWorker>();

  constructor(arena: Arena) {
    this.#arena = arena;
    arena.onBlock((block) => {
      for (const worker of this.#all) worker.port.postMessage(block);
    });
  }

  /** Threads that exist. */
  get size(): number {
    return this.#all.size;
  }

  /** `count` workers that report to `owner`. Rejects when threads cannot be started. */
  async lease(count: number, owner: LeaseOwner): Promise<readonly Lease[]> {
    const settled = await Promise.allSettled(
      Array.from({ length: count }, () => this.#idle.pop() ?? this.#start()),
    );
    const workers = settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const failure = settled.find((result) => result.status === 'rejected');
    if (failure !== undefined) {
      for (const worker of workers) this.#rest(worker);
      throw failure.reason;
    }
    return workers.map((worker) => this.#leaseOf(worker, owner));
  }

  #leaseOf(worker: PoolWorker, owner: LeaseOwner): Lease {
    worker.owner = owner;
    const left = new Promise<void>((resolve) => {
      worker.onLeft = resolve;
    });
    return {
      hold: (on) => (on ? worker.thread.ref() : worker.thread.unref()),
      attach: (message) => worker.thread.postMessage(message),
      left,
      thread: worker.thread,
    };
  }

  async #start(): Promise<PoolWorker> {
    const slot = this.#freeSlot();
    const channel = new MessageChannel();
    const start: WorkerStart = { slot, blocks: this.#arena.blocks, port: channel.port2 };
    let thread: Worker;
    try {
      thread = new Worker(workerUrl(), {
        name: `nccl-ext-${slot}`,
        workerData: start,
        transferList: [channel.port2],
        execArgv: [],
      });
    } catch (cause) {
      this.#slots.delete(slot);
      throw cause;
    }
    const worker: PoolWorker = { thread, slot, port: channel.port1, owner: undefined, onLeft: () => {} };
    channel.port1.unref();
    this.#all.add(worker);
    await new Promise<void>((resolve, reject) => {
      thread.on('message', (message: WorkerMessage) => this.#onMessage(worker, message, resolve));
      thread.on('error', (cause) => this.#onEnd(worker, cause, reject));
      thread.on('exit', (code) => this.#onEnd(worker, new Error(`a worker ended with code ${code}`), reject));
    });
    thread.unref();
    return worker;
  }

  #onMessage(worker: PoolWorker, message: WorkerMessage, started: () => void): void {
    if (message.kind === 'ready') started();
    else if (message.kind !== 'detached') worker.owner?.onMessage(message);
    else {
      this.#rest(worker);
      worker.onLeft();
    }
  }

  #rest(worker: PoolWorker): void {
    worker.owner = undefined;
    worker.thread.unref();
    if (this.#idle.length < keptWorkers) this.#idle.push(worker);
    else void worker.thread.terminate();
  }

  #onEnd(worker: PoolWorker, cause: Error, reject: (cause: Error) => void): void {
    if (!this.#all.delete(worker)) return;
    const index = this.#idle.indexOf(worker);
    if (index >= 0) this.#idle.splice(index, 1);
    this.#slots.delete(worker.slot);
    worker.port.close();
    reject(cause);
    worker.onLeft();
    worker.owner?.onDeath(cause);
  }

  #freeSlot(): number {
    for (let slot = 0; slot < maxWorkers; slot++) {
      if (this.#slots.has(slot)) continue;
      this.#slots.add(slot);
      return slot;
    }
    throw new Error(`this process already has ${maxWorkers} workers, which is the most`);
  }
}

/** The workers of this process. */
export const processPool: WorkerPool = new WorkerPool(processArena);

/** Threads cannot run TypeScript: from sources they run what the build made of them. */
function workerUrl(): URL {
  const beside = new URL('../worker.js', import.meta.url);
  const built = existsSync(fileURLToPath(beside))
    ? beside
    : new URL('../../../dist/embedded/worker.js', import.meta.url);
  if (!existsSync(fileURLToPath(built)))
    throw new Error(`${fileURLToPath(built)} is missing; run tsc -b to build it`);
  return built;
}
