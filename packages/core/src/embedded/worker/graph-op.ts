// SPDX-License-Identifier: Apache-2.0
// Launches of a graph: one operation that runs a list of records, with a counter of its own in the stream's progress.

import { recordBytes } from '../control/records.js';
import { offsetOf } from '../memory/address.js';
import { argument, getProgress, progress, type Step, setProgress, type Task, wakeWorld } from './task.js';

/** Bytes before the records of a graph's region: the stream (plus 1) that runs it. */
export const graphHeaderBytes = 64;

/**
 * Runs records until one cannot go on. Launches of one graph on several streams run one after the other, as on CUDA.
 * `stepNode` makes progress on the record that the task points to.
 */
export function stepGraph(task: Task, stepNode: (task: Task) => Step): Step {
  const region = argument(task, 1);
  const length = argument(task, 2);
  const { record, index } = task;
  if (!enterGraph(task)) return 'blocked';
  task.parameters = argument(task, 3);
  const nodes = task.world.spaces.of(region);
  let step: Step = 'done';
  for (let pc = getProgress(task, progress.graphPc) - 1; pc < length && step === 'done'; pc++) {
    task.record = nodes;
    task.index = (offsetOf(region) + pc * recordBytes) / 8;
    step = task.budget > 0 ? stepNode(task) : 'more';
    if (step !== 'done') break;
    clearNode(task);
    setProgress(task, progress.graphPc, pc + 2);
  }
  task.record = record;
  task.index = index;
  task.parameters = 0;
  if (step === 'done') leaveGraph(task);
  return step;
}

/** Lets the next launch of the graph run. */
export function leaveGraph(task: Task): void {
  const { space, word } = holder(task);
  if (Atomics.compareExchange(space.i32, word, task.stream + 1, 0) === task.stream + 1) wakeWorld(task.world);
}

function enterGraph(task: Task): boolean {
  if (getProgress(task, progress.graphPc) !== 0) return true;
  const { space, word } = holder(task);
  if (Atomics.compareExchange(space.i32, word, 0, task.stream + 1) !== 0) return false;
  setProgress(task, progress.graphPc, 1);
  return true;
}

function holder(task: Task): { space: Task['ring']; word: number } {
  const region = argument(task, 1);
  return { space: task.world.spaces.of(region), word: (offsetOf(region) - graphHeaderBytes) / 4 };
}

function clearNode(task: Task): void {
  const { progress: start } = task;
  const pc = getProgress(task, progress.graphPc);
  task.ring.f64.fill(0, start, start + progress.words);
  setProgress(task, progress.graphPc, pc);
}
