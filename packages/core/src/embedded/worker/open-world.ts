// SPDX-License-Identifier: Apache-2.0
// A world as one worker sees it, from the address of its region.

import { worldWord } from '../control/world-layout.js';
import { offsetOf } from '../memory/address.js';
import type { Spaces } from './spaces.js';
import { type Task, timeoutOf, type WorkerMessage, type World } from './task.js';

/** `split` and `root` are 0 and undefined for the world that the workers serve. */
export function openWorld(
  spaces: Spaces,
  address: number,
  split: number,
  root: World | undefined,
  post: (message: WorkerMessage) => void,
): World {
  const space = spaces.of(address);
  const base = offsetOf(address) / 4;
  return {
    spaces,
    space,
    base,
    ranks: Atomics.load(space.i32, base + worldWord.ranks),
    timeoutMs: timeoutOf(space, base),
    root: root ?? { space, base },
    post: (message) => post({ kind: 'world', split, message }),
  };
}

/** A task of this worker for the streams of `world`. */
export function newTask(world: World): Task {
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
