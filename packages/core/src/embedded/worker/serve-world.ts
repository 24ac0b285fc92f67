// SPDX-License-Identifier: Apache-2.0
// The loop of a worker: looks at the streams of its world and of those split from it, moves what can move, and sleeps only when nothing can.

import { now } from '../control/clock.js';
import { sleep, wakeCount } from '../control/wake.js';
import { rankEntry, rankWord, streamEntry, streamWord, worldWord } from '../control/world-layout.js';
import { newTask, openWorld } from './open-world.js';
import { runStream } from './run-stream.js';
import type { Spaces } from './spaces.js';
import { SplitTasks } from './split-tasks.js';
import { type Task, type WorkerMessage, wakeWorld } from './task.js';

/** Serves the world whose region starts at `address` until its owner closes it. `worker` counts from 0 in this world. */
export function serveWorld(
  spaces: Spaces,
  address: number,
  worker: number,
  post: (message: WorkerMessage) => void,
): void {
  const world = openWorld(spaces, address, 0, undefined, post);
  const { space, base } = world;
  const task = newTask(world);
  const splits = new SplitTasks(world, post);
  for (let first = worker; ; first++) {
    const seen = wakeCount(space.i32, base);
    if (Atomics.load(space.i32, base + worldWord.closing) !== 0) return;
    let wakeAt = Number.POSITIVE_INFINITY;
    const look = (of: Task): boolean => {
      of.wakeAt = Number.POSITIVE_INFINITY;
      const moved = pass(of, first, worker + 1);
      wakeAt = Math.min(wakeAt, of.wakeAt);
      return moved;
    };
    const movedHere = look(task);
    if (splits.visit(look) || movedHere) continue;
    const rest = wakeAt - now();
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

function isRunnable(world: Task['world'], entry: number): boolean {
  const { i32 } = world.space;
  const owner = Atomics.load(i32, entry + streamWord.owner);
  return (
    owner !== 0 &&
    Atomics.load(i32, entry + streamWord.head) !== Atomics.load(i32, entry + streamWord.tail) &&
    Atomics.load(i32, entry + streamWord.suspended) === 0 &&
    Atomics.load(i32, world.base + rankEntry(owner - 1) + rankWord.stopped) === 0
  );
}
