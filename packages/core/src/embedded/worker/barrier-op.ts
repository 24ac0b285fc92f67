// SPDX-License-Identifier: Apache-2.0
// The barrier, on a worker: each rank counts the barriers that it reached, and the n-th ends when all counted to n.

import { rankWord } from '../control/world-layout.js';
import { failLost, failTimeout, lossAmong } from './failure.js';
import {
  getProgress,
  isExpired,
  progress,
  rankBase,
  type Step,
  setProgress,
  type Task,
  type World,
  wakeWorld,
} from './task.js';

const waiting = 1;

export function stepBarrier(task: Task): Step {
  const { world } = task;
  if (getProgress(task, progress.phase) === 0) {
    const reached = Atomics.add(world.space.i64, countWord(world, task.rank), 1n) + 1n;
    setProgress(task, progress.phase, waiting);
    setProgress(task, progress.own, Number(reached));
    wakeWorld(world);
  }
  const target = BigInt(getProgress(task, progress.own));
  const came = (rank: number): boolean => Atomics.load(world.space.i64, countWord(world, rank)) >= target;
  const missing: number[] = [];
  for (let rank = 0; rank < world.ranks; rank++) if (!came(rank)) missing.push(rank);
  if (missing.length === 0) return 'done';
  const loss = lossAmong(world, missing, came);
  if (loss !== undefined) {
    failLost(task, 'barrier', loss);
    return 'done';
  }
  if (!isExpired(task)) return 'blocked';
  const seen = Atomics.load(world.space.i64, countWord(world, missing[0]!));
  failTimeout(task, 'barrier', missing, target, seen);
  return 'done';
}

function countWord(world: World, rank: number): number {
  return rankBase(world, rank) / 2 + rankWord.barriersI64;
}
