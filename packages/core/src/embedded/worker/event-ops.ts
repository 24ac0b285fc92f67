// SPDX-License-Identifier: Apache-2.0
// Records events and waits for them, on a worker.

import { now } from '../control/clock.js';
import { isDone, isReached, markDrained, originOf, reach } from '../control/event-cell.js';
import { rankWord } from '../control/world-layout.js';
import { offsetOf } from '../memory/address.js';
import { fail, lossAmong, lossRecord, lostRecord, timeoutRecord } from './failure.js';
import { argument, isExpired, rankBase, type Step, type Task, type World, wakeWorld } from './task.js';

export function stepRecord(task: Task): Step {
  reachEvent(task);
  return 'done';
}

/** Marks the record as reached and tells whoever waits. */
function reachEvent(task: Task): void {
  const cell = argument(task, 1);
  const space = task.world.spaces.of(cell);
  if (reach(space, offsetOf(cell), generationOf(task), now())) task.world.post({ kind: 'event', cell });
  wakeWorld(task.world);
}

/** Marks the record of an unusable rank as reached: nobody hangs for it, and no other rank takes it for work done. */
export function drainEvent(task: Task): void {
  const cell = argument(task, 1);
  markDrained(task.world.spaces.of(cell), offsetOf(cell), generationOf(task));
  reachEvent(task);
}

export function stepWait(task: Task): Step {
  const cell = argument(task, 1);
  const space = task.world.spaces.of(cell);
  const generation = generationOf(task);
  if (isDone(space, offsetOf(cell), generation)) return 'done';
  // The owner may be of another world of the same family.
  const owner = argument(task, 4);
  const lost = offsetOf(owner) / 4 + rankWord.lost;
  const origin = originOf(space, offsetOf(cell));
  const reached = isReached(space, offsetOf(cell), generation);
  // A wait inside a rank ends when its other stream gets there, whose own waits have deadlines; it may take its time.
  if (origin === task.world.space.i32[task.rankBase + rankWord.origin]) return reached ? 'done' : 'blocked';
  if (reached || Atomics.load(task.world.spaces.of(owner).i32, lost) !== 0) {
    // What the lost rank had recorded is reached by the time it is gone, and its words may be another's; look once more.
    if (isDone(space, offsetOf(cell), generation)) return 'done';
    failGone(task, owner, origin);
    return 'done';
  }
  if (!isExpired(task)) return 'blocked';
  const { peer, name } = ownerIn(task.world, origin);
  const record = timeoutRecord(task, 'wait', [peer], generation, 0, task.world.timeoutMs);
  fail(task, {
    ...record,
    detail: `rank ${task.rank} waited ${task.world.timeoutMs} ms in wait for ${name}`,
  });
  return 'done';
}

/** The owner of the event is unusable; where it is a rank of this world that lost another one, that one is named. */
function failGone(task: Task, owner: number, origin: number): void {
  const { world } = task;
  const { peer, name } = ownerIn(world, origin);
  const ours = world.spaces.of(owner) === world.space && offsetOf(owner) / 4 === rankBase(world, peer);
  const loss = ours ? lossAmong(world, [peer], () => false) : undefined;
  fail(task, loss === undefined ? lostRecord(task, 'wait', peer, name) : lossRecord(task, 'wait', loss));
}

/** What a world calls the rank that an event belongs to: a rank that it has not is no peer, and goes by its number in the first world. */
function ownerIn(world: World, origin: number): { readonly peer: number; readonly name: string } {
  for (let peer = 0; peer < world.ranks; peer++)
    if (world.space.i32[rankBase(world, peer) + rankWord.origin] === origin)
      return { peer, name: `rank ${peer}` };
  return { peer: -1, name: `rank ${origin} of the world that this one was split from` };
}

/** In a graph, generations count from what the launch found. */
function generationOf(task: Task): number {
  const generation = argument(task, 2);
  const slot = argument(task, 3);
  if (slot < 0) return generation;
  const parameters = task.world.spaces.of(task.parameters);
  return parameters.f64[offsetOf(task.parameters) / 8 + slot]! + generation;
}
