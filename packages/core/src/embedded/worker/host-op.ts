// SPDX-License-Identifier: Apache-2.0
// Work that only the thread that owns the world can do (it touches the user's arrays): the stream stands still meanwhile.

import { streamEntry, streamWord } from '../control/world-layout.js';
import { argument, getProgress, progress, type Step, setProgress, type Task } from './task.js';

const asked = 1;

/** The owner clears `suspended` once the call has run, and wakes the workers. */
export function stepHost(task: Task): Step {
  if (getProgress(task, progress.phase) === asked) return 'done';
  const { world, stream } = task;
  setProgress(task, progress.phase, asked);
  Atomics.store(world.space.i32, world.base + streamEntry(world.ranks, stream) + streamWord.suspended, 1);
  world.post({ kind: 'host', stream, call: argument(task, 1) });
  return 'blocked';
}

/** The call will not run; the owner forgets it unless a graph keeps it. */
export function dropHost(task: Task): void {
  if (getProgress(task, progress.phase) !== asked)
    task.world.post({ kind: 'dropped', call: argument(task, 1) });
}
