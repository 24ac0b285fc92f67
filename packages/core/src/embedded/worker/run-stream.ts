// SPDX-License-Identifier: Apache-2.0
// Makes progress on one stream while this worker holds its lock.

import { now } from '../control/clock.js';
import { operationName, operations, recordBytes } from '../control/records.js';
import { rankWord, ring, streamEntry, streamWord } from '../control/world-layout.js';
import { offsetOf } from '../memory/address.js';
import { stepBarrier } from './barrier-op.js';
import { stepCopy, stepFill } from './copy-ops.js';
import { drain } from './drain.js';
import { stepEp } from './ep-op.js';
import { stepRecord, stepWait } from './event-ops.js';
import { failInternal } from './failure.js';
import { stepGraph } from './graph-op.js';
import { stepHost } from './host-op.js';
import { argument, getProgress, progress, rankBase, type Step, setProgress, type Task } from './task.js';
import { stepTransfer } from './transfer-op.js';

/** Bytes that one visit moves at most: about a millisecond, so that few workers serve many streams evenly. */
const visitBytes = 8 * 2 ** 20;
/** Operations that one visit ends at most. */
const visitOperations = 64;

/** What a visit found: `idle` nothing could move, `moved` something did, `left` something did and more could. */
type Visit = 'idle' | 'moved' | 'left';

export function runStream(task: Task, stream: number): Visit {
  const { world } = task;
  const { i32, f64 } = world.space;
  const entry = world.base + streamEntry(world.ranks, stream);
  const owner = Atomics.load(i32, entry + streamWord.owner);
  // Freed between the look and the lock.
  if (owner === 0) return 'idle';
  point(task, stream, owner - 1, f64[entry / 2 + streamWord.ringF64]!);
  let visit: Visit = 'idle';
  for (let count = 0; ; count++) {
    const head = Atomics.load(i32, entry + streamWord.head);
    if (head === Atomics.load(i32, entry + streamWord.tail)) return visit;
    if (Atomics.load(i32, entry + streamWord.suspended) !== 0) return visit;
    if (Atomics.load(i32, task.rankBase + rankWord.stopped) !== 0) return visit;
    if (count === visitOperations || task.budget <= 0) return 'left';
    task.record = task.ring;
    task.index = (task.ringOffset + ring.records + (head & 255) * recordBytes) / 8;
    const step = safeStep(task);
    if (step === 'blocked') return visit;
    visit = 'moved';
    setProgress(task, progress.blockedSince, 0);
    if (step === 'done') finish(task, entry, head);
  }
}

function point(task: Task, stream: number, rank: number, address: number): void {
  task.stream = stream;
  task.rank = rank;
  task.rankBase = rankBase(task.world, rank);
  task.ring = task.world.spaces.of(address);
  task.ringOffset = offsetOf(address);
  task.progress = (task.ringOffset + ring.progress) / 8;
  task.parameters = 0;
  task.budget = visitBytes;
}

/**
 * The operation is over: the next one starts with clean progress, and who waits for this stream hears of it. Once `head` has
 * moved past the last operation the ring may be freed, so nothing of it is touched any more.
 */
function finish(task: Task, entry: number, head: number): void {
  const { i32 } = task.world.space;
  task.ring.f64.fill(0, task.progress, task.progress + progress.words);
  const next = (head + 1) | 0;
  Atomics.store(i32, entry + streamWord.head, next);
  if (Atomics.load(i32, entry + streamWord.wanted) === 0) return;
  if (((next - Atomics.load(i32, entry + streamWord.target)) | 0) < 0) return;
  if (Atomics.compareExchange(i32, entry + streamWord.wanted, 1, 0) === 1)
    task.world.post({ kind: 'stream', stream: task.stream });
}

/** A defect must not end the worker: it becomes an error of this stream. */
function safeStep(task: Task): Step {
  const { record, index } = task;
  try {
    return step(task);
  } catch (cause) {
    failInternal(task, operationName(argument(task, 0)), cause);
    task.record = record;
    task.index = index;
    drain(task);
    return 'done';
  }
}

function step(task: Task): Step {
  if (Atomics.load(task.world.space.i32, task.rankBase + rankWord.poison) !== 0) {
    drain(task);
    return 'done';
  }
  if (isDelayed(task)) return 'blocked';
  switch (argument(task, 0)) {
    case operations.copy:
      return stepCopy(task);
    case operations.fill:
      return stepFill(task);
    case operations.host:
      return stepHost(task);
    case operations.record:
      return stepRecord(task);
    case operations.wait:
      return stepWait(task);
    case operations.barrier:
      return stepBarrier(task);
    case operations.graph:
      return stepGraph(task, step);
    case operations.transfer:
      return stepTransfer(task);
    case operations.ep:
      return stepEp(task);
    default:
      throw new Error(`unknown operation ${argument(task, 0)}`);
  }
}

/** Fault injection: an operation of a delayed rank starts late. The records of a graph are operations too. */
function isDelayed(task: Task): boolean {
  if (argument(task, 0) === operations.graph) return false;
  const delay = task.world.space.f64[task.rankBase / 2 + rankWord.delayF64]!;
  let readyAt = getProgress(task, progress.readyAt);
  if (readyAt === 0) {
    if (delay === 0 || getProgress(task, progress.phase) !== 0) return false;
    readyAt = now() + delay;
    setProgress(task, progress.readyAt, readyAt);
  }
  if (delay === 0 || now() >= readyAt) return false;
  task.wakeAt = Math.min(task.wakeAt, readyAt);
  return true;
}
