// SPDX-License-Identifier: Apache-2.0
// The loop of a worker: looks at the streams of its world, moves what can move, and sleeps only when nothing can.

import { now } from '../control/clock.js';
import { sleep, wakeCount } from '../control/wake.js';
import { rankEntry, rankWord, streamEntry, streamWord, worldWord } from '../control/world-layout.js';
import { offsetOf } from '../memory/address.js';
import { runStream } from './run-stream.js';
import type { Spaces } from './spaces.js';
import { type Task, timeoutOf, type WorkerMessage, type World, wakeWorld } from './task.js';

/** Serves the world whose region starts at `address` until its owner closes it. `worker` counts from 0 in this world. */
export function serveWorld(
  spaces: Spaces,
  address: number,
  worker: number,
  post: (message: WorkerMessage) => void,
): void {
  const space = spaces.of(address);
  const base = offsetOf(address) / 4;
  const ranks = Atomics.load(space.i32, base + worldWord.ranks);
  const world: World = { spaces, space, base, ranks, timeoutMs: timeoutOf(space, base), post };
  const task = newTask(world);
  for (let first = worker; ; first++) {
    const seen = wakeCount(space.i32, base);
    if (Atomics.load(space.i32, base + worldWord.closing) !== 0) return;
    task.wakeAt = Number.POSITIVE_INFINITY;
    if (pass(task, first, worker + 1)) continue;
    const rest = task.wakeAt - now();
    if (rest > 0) sleep(space.i32, base, seen, rest);
  }
}

/** Visits every stream once, from a rotating start; true if anything moved. */
function pass(task: Task, first: number, worker: number): boolean {
  const { world } = task;
  const { i32 } = world.space;
  const streams = Atomics.load(i32, world.base + worldWord.streams);
  let moved = false;
  let left = false;
  for (let i = 0; i < streams; i++) {
    const stream = (first + i) % streams;
    const entry = world.base + streamEntry(world.ranks, stream);
    if (!isRunnable(world, entry)) continue;
    if (Atomics.compareExchange(i32, entry + streamWord.lock, 0, worker) !== 0) continue;
    // Another worker may take over what this one left behind to look at the next stream.
    if (left) wakeWorld(world);
    const visit = runStream(task, stream);
    Atomics.store(i32, entry + streamWord.lock, 0);
    left = visit === 'left';
    moved ||= visit !== 'idle';
  }
  return moved;
}

function isRunnable(world: World, entry: number): boolean {
  const { i32 } = world.space;
  const owner = Atomics.load(i32, entry + streamWord.owner);
  return (
    owner !== 0 &&
    Atomics.load(i32, entry + streamWord.head) !== Atomics.load(i32, entry + streamWord.tail) &&
    Atomics.load(i32, entry + streamWord.suspended) === 0 &&
    Atomics.load(i32, world.base + rankEntry(owner - 1) + rankWord.stopped) === 0
  );
}

function newTask(world: World): Task {
  const { space } = world;
  return {
    world,
    stream: 0,
    rank: 0,
    rankBase: 0,
    ring: space,
    ringOffset: 0,
    progress: 0,
    record: space,
    index: 0,
    parameters: 0,
    budget: 0,
    wakeAt: Number.POSITIVE_INFINITY,
  };
}
