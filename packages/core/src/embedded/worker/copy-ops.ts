// SPDX-License-Identifier: Apache-2.0
// Copies and fills device memory, a few mebibytes per step so that other streams get their turn.

import { offsetOf } from '../memory/address.js';
import { bytesAt } from '../memory/space.js';
import { copyPiece } from './copy-piece.js';
import { emptyPiece } from './piece.js';
import { argument, getProgress, progress, type Step, setProgress, type Task } from './task.js';

const piece = emptyPiece();
// What little budget is left must not cut a copy into crumbs.
const leastBytes = 65_536;

export function stepCopy(task: Task): Step {
  return inSteps(task, argument(task, 3), (done, bytes) => {
    piece.destination = argument(task, 1) + done;
    piece.source = argument(task, 2) + done;
    piece.inner = bytes;
    copyPiece(task.world.spaces, piece);
  });
}

export function stepFill(task: Task): Step {
  const destination = argument(task, 1);
  return inSteps(task, argument(task, 2), (done, bytes) => {
    const space = task.world.spaces.of(destination);
    bytesAt(space, offsetOf(destination) + done, bytes).fill(argument(task, 3));
  });
}

function inSteps(task: Task, total: number, step: (done: number, bytes: number) => void): Step {
  const done = getProgress(task, progress.own);
  const bytes = Math.min(total - done, Math.max(task.budget, leastBytes));
  if (bytes > 0) step(done, bytes);
  task.budget -= bytes;
  setProgress(task, progress.own, done + bytes);
  return done + bytes === total ? 'done' : 'more';
}
