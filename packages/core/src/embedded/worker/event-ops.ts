// SPDX-License-Identifier: Apache-2.0
// Records events and waits for them, on a worker.

import { now } from '../control/clock.js';
import { isReached, reach } from '../control/event-cell.js';
import { rankWord } from '../control/world-layout.js';
import { offsetOf } from '../memory/address.js';
import { failLost, failTimeout } from './failure.js';
import { argument, isExpired, type Step, type Task, wakeWorld } from './task.js';

export function stepRecord(task: Task): Step {
  reachEvent(task);
  return 'done';
}

/** Marks the record as reached and tells whoever waits. */
export function reachEvent(task: Task): void {
  const cell = argument(task, 1);
  const space = task.world.spaces.of(cell);
  if (reach(space, offsetOf(cell), generationOf(task), now())) task.world.post({ kind: 'event', cell });
  wakeWorld(task.world);
}

export function stepWait(task: Task): Step {
  const cell = argument(task, 1);
  const space = task.world.spaces.of(cell);
  const generation = generationOf(task);
  if (isReached(space, offsetOf(cell), generation)) return 'done';
  // The owner may be of another world of the same family, so it is known by its words.
  const owner = argument(task, 4);
  const words = task.world.spaces.of(owner).i32;
  const base = offsetOf(owner) / 4;
  const rank = words[base + rankWord.rank]!;
  // A wait inside a rank ends when its other stream gets there, whose own waits have deadlines; it may take its time.
  if (words[base + rankWord.origin] === task.world.space.i32[task.rankBase + rankWord.origin])
    return 'blocked';
  if (Atomics.load(words, base + rankWord.lost) !== 0) {
    // What the lost rank had recorded is reached by the time it is gone, and its words may be another's; look once more.
    if (isReached(space, offsetOf(cell), generation)) return 'done';
    failLost(task, 'wait', { awaited: rank, lost: rank });
    return 'done';
  }
  if (!isExpired(task)) return 'blocked';
  failTimeout(task, 'wait', [rank], generation, 0);
  return 'done';
}

/** In a graph, generations count from what the launch found. */
function generationOf(task: Task): number {
  const generation = argument(task, 2);
  const slot = argument(task, 3);
  if (slot < 0) return generation;
  const parameters = task.world.spaces.of(task.parameters);
  return parameters.f64[offsetOf(task.parameters) / 8 + slot]! + generation;
}
