// SPDX-License-Identifier: Apache-2.0
// What becomes of operations of a poisoned rank: they end at once without effect, but nobody who waits for them hangs.

import { errorNumbers } from '../../errors/codes.js';
import { operationName, operations, recordBytes } from '../control/records.js';
import { offsetOf } from '../memory/address.js';
import { abandonEp } from './ep-op.js';
import { drainEvent } from './event-ops.js';
import { poisonRecord, reportError } from './failure.js';
import { leaveGraph } from './graph-op.js';
import { dropHost } from './host-op.js';
import { argument, getProgress, progress, type Task } from './task.js';
import { abandonTransfer } from './transfer-op.js';

/** Ends the task's operation; events that it would have recorded are reached, and known to be drained. */
export function drain(task: Task): void {
  const operation = argument(task, 0);
  if (operation !== operations.record) reportSkipped(task, operation);
  if (operation === operations.graph) drainGraph(task);
  else drainOne(task);
}

function drainOne(task: Task): void {
  const operation = argument(task, 0);
  if (operation === operations.record) drainEvent(task);
  if (operation === operations.transfer) abandonTransfer(task);
  if (operation === operations.ep) abandonEp(task);
  if (operation === operations.host) dropHost(task);
}

function drainGraph(task: Task): void {
  const region = argument(task, 1);
  const length = argument(task, 2);
  const { record, index } = task;
  task.parameters = argument(task, 3);
  const nodes = task.world.spaces.of(region);
  for (let pc = Math.max(0, getProgress(task, progress.graphPc) - 1); pc < length; pc++) {
    task.record = nodes;
    task.index = (offsetOf(region) + pc * recordBytes) / 8;
    drainOne(task);
  }
  task.record = record;
  task.index = index;
  task.parameters = 0;
  leaveGraph(task);
}

function reportSkipped(task: Task, operation: number): void {
  const reason = poisonRecord(task.world.space, task.rankBase);
  const op = operationName(operation);
  if (reason?.code === errorNumbers.ERR_ABORTED) reportError(task.ring, task.ringOffset, { ...reason, op });
  else
    reportError(task.ring, task.ringOffset, {
      code: errorNumbers.ERR_POISONED,
      op,
      rank: task.rank,
      peer: reason?.peer ?? -1,
      expected: 'a usable rank',
      seen: 'a poisoned rank',
      detail: `${op} was skipped: rank ${task.rank} is unusable since ${reason?.detail ?? 'an earlier error'}`,
      help: 'Dispose the ranks and make a new world.',
    });
}
