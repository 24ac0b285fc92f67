// SPDX-License-Identifier: Apache-2.0
// One execution of a transfer on one rank, as a machine whose phases follow the protocol of contract/m2n.ts.
//
// Who may touch what: a sender writes to a receiver only between the receiver's grant and its own arrival mark of the same
// execution. `writing` and `revoked` close the one gap: a receiver that gives up its memory while a sender is at work
// revokes it. One that failed may still see the end of a step that was under way (about a millisecond); disposing the transfer
// waits for that (see transfer/dispose-transfer.ts).

import { rankWord } from '../control/world-layout.js';
import { offsetOf } from '../memory/address.js';
import { bytesAt } from '../memory/space.js';
import { arrivalIndex, group, header, move } from '../transfer/program-layout.js';
import { failLost, failTimeout, lossAmong } from './failure.js';
import { openHash, sendMove } from './move-step.js';
import { getProgress, isExpired, progress, type Step, setProgress, type Task, wakeWorld } from './task.js';
import { openTransfer, own, type Transfer } from './transfer-state.js';
import { stepVerify } from './transfer-verify.js';

type Phase = 'next' | Step;

const phases = [admit, sendStage0, awaitStage0, sendStage1, awaitStage1, stepVerify];

export function stepTransfer(task: Task): Step {
  const transfer = openTransfer(task);
  for (;;) {
    const phase = phases[getProgress(task, progress.phase)];
    if (phase === undefined) return complete(task, transfer);
    const outcome: Phase = phase(task, transfer);
    if (outcome !== 'next') {
      if (outcome === 'done') abandonTransfer(task);
      return outcome;
    }
    setProgress(task, progress.phase, getProgress(task, progress.phase) + 1);
  }
}

/** Ends an execution of this stream that failed: whoever comes late must not write any more. */
export function abandonTransfer(task: Task): void {
  const transfer = openTransfer(task);
  const { program, shared, layout, runningWord, i32Of } = transfer;
  if (Atomics.load(program.i32, runningWord) !== task.stream + 1) return;
  Atomics.store(shared.i32, i32Of(layout.revoked) + task.rank, 1);
  leave(task, transfer);
}

/** Ends an execution of this stream, so that the next one may begin. */
function leave(task: Task, { program, shared, layout, runningWord, i32Of }: Transfer): void {
  Atomics.store(shared.i32, i32Of(layout.writing) + task.rank, 0);
  Atomics.store(program.i32, runningWord, 0);
  wakeWorld(task.world);
}

function complete(task: Task, transfer: Transfer): Step {
  if (getProgress(task, own.failed) === 0) transfer.program.f64[transfer.start + header.completed]! += 1;
  leave(task, transfer);
  return 'done';
}

/** Waits for this rank's previous execution, then lets peers write. */
function admit(task: Task, transfer: Transfer): Phase {
  const { program, shared, start, runningWord, layout, i64Of } = transfer;
  if (Atomics.compareExchange(program.i32, runningWord, 0, task.stream + 1) !== 0) return 'blocked';
  const epoch = Atomics.add(program.i64, start + header.executionsI64, 1n) + 1n;
  setProgress(task, own.epoch, Number(epoch));
  Atomics.store(shared.i64, i64Of(layout.grants) + task.rank, epoch);
  wakeWorld(task.world);
  return 'next';
}

function sendStage0(task: Task, transfer: Transfer): Phase {
  return send(task, transfer, 0);
}

function sendStage1(task: Task, transfer: Transfer): Phase {
  return send(task, transfer, 1);
}

function awaitStage0(task: Task, transfer: Transfer): Phase {
  return awaitArrivals(task, transfer, 0, transfer.peers);
}

function awaitStage1(task: Task, transfer: Transfer): Phase {
  return awaitArrivals(task, transfer, 1, transfer.forwarders);
}

/** Sends to whoever has granted, in the order of the groups; waits only when nobody else has. */
function send(task: Task, transfer: Transfer, stage: number): Phase {
  while (task.budget > 0) {
    let current = getProgress(task, own.group) - 1;
    if (current < 0) {
      const choice = choose(task, transfer, stage);
      if (choice.missing.length === 0 && choice.group < 0) return 'next';
      if (choice.group < 0) return wait(task, transfer, choice.missing, (peer) => grantOf(transfer, peer));
      current = choice.group;
      setProgress(task, own.group, current + 1);
      setProgress(task, own.move, transfer.program.f64[groupStart(transfer, current) + group.firstMove]!);
    }
    const gone = sendGroup(task, transfer, current);
    if (gone !== undefined) {
      const loss = lossAmong(task.world, [gone], () => false);
      failLost(task, 'transfer', loss ?? { awaited: gone, lost: gone });
      return 'done';
    }
    setProgress(task, progress.blockedSince, 0);
  }
  return 'more';
}

/** The first group of the stage that is open and granted, or the peers that have not granted. */
function choose(task: Task, transfer: Transfer, stage: number): { group: number; missing: number[] } {
  const { f64 } = transfer.program;
  const epoch = getProgress(task, own.epoch);
  const missing: number[] = [];
  for (let index = 0; index < transfer.groups; index++) {
    const at = groupStart(transfer, index);
    if (f64[at + group.stage] !== stage || f64[at + group.doneEpoch] === epoch) continue;
    const peer = f64[at + group.peer]!;
    if (peer === task.rank || grantOf(transfer, peer) >= BigInt(epoch)) return { group: index, missing };
    missing.push(peer);
  }
  return { group: -1, missing };
}

/** Works on a group within the budget and marks its arrival at the end; the peer when that one has left. */
function sendGroup(task: Task, transfer: Transfer, index: number): number | undefined {
  const { program, shared, layout, i32Of, i64Of } = transfer;
  const at = groupStart(transfer, index);
  const peer = program.f64[at + group.peer]!;
  const end = program.f64[at + group.endMove]!;
  const writing = i32Of(layout.writing) + task.rank;
  Atomics.store(shared.i32, writing, peer + 1);
  if (Atomics.load(shared.i32, i32Of(layout.revoked) + peer) !== 0) {
    Atomics.store(shared.i32, writing, 0);
    return peer;
  }
  let current = getProgress(task, own.move);
  while (current < end && task.budget > 0) if (sendPart(task, transfer, current)) current++;
  Atomics.store(shared.i32, writing, 0);
  setProgress(task, own.move, current);
  if (current < end) return undefined;
  const epoch = getProgress(task, own.epoch);
  program.f64[at + group.doneEpoch] = epoch;
  setProgress(task, own.group, 0);
  setProgress(task, own.move, 0);
  const stage = program.f64[at + group.stage]!;
  const arrival = arrivalIndex(task.world.ranks, task.rank, peer, stage);
  Atomics.store(shared.i64, i64Of(layout.arrivals) + arrival, BigInt(epoch));
  if (peer !== task.rank) wakeWorld(task.world);
  return undefined;
}

/** One step of a move; true when the move is over. */
function sendPart(task: Task, transfer: Transfer, current: number): boolean {
  const { program, shared, layout, i64Of } = transfer;
  const { spaces } = task.world;
  const at = transfer.moves + current * move.words;
  const cursor = { run: getProgress(task, own.run), unit: getProgress(task, own.unit) };
  if (cursor.run === 0 && cursor.unit === 0 && program.f64[at + move.opensHash] === 1)
    openHash(spaces, program.f64[at + move.hashAddress]!);
  const step = sendMove(spaces, program, at, cursor, task.budget);
  task.budget -= step.cost;
  shared.f64[i64Of(layout.written) + task.rank]! += step.bytes;
  setProgress(task, own.run, step.over ? 0 : cursor.run);
  setProgress(task, own.unit, step.over ? 0 : cursor.unit);
  if (step.over) damage(task, program.f64[at + move.destination]!);
  return step.over;
}

/** Fault injection: flips a bit of what was just written, after it was hashed. */
function damage(task: Task, destination: number): void {
  const { space, spaces } = task.world;
  if (Atomics.load(space.i32, task.rankBase + rankWord.corrupt) === 0) return;
  Atomics.store(space.i32, task.rankBase + rankWord.corrupt, 0);
  bytesAt(spaces.of(destination), offsetOf(destination), 1)[0]! ^= 1;
}

function awaitArrivals(task: Task, transfer: Transfer, stage: number, senders: readonly number[]): Phase {
  const { shared, layout, i64Of } = transfer;
  const epoch = BigInt(getProgress(task, own.epoch));
  const arrived = (sender: number): bigint =>
    Atomics.load(
      shared.i64,
      i64Of(layout.arrivals) + arrivalIndex(task.world.ranks, sender, task.rank, stage),
    );
  const missing = senders.filter((sender) => arrived(sender) < epoch);
  return missing.length === 0 ? 'next' : wait(task, transfer, missing, arrived);
}

/** Blocked, unless a missing peer is lost or the deadline has passed while none of them made progress. */
function wait(
  task: Task,
  transfer: Transfer,
  missing: readonly number[],
  seen: (peer: number) => bigint,
): Phase {
  const epoch = BigInt(getProgress(task, own.epoch));
  const loss = lossAmong(task.world, missing, (peer) => seen(peer) >= epoch);
  if (loss !== undefined) {
    failLost(task, 'transfer', loss);
    return 'done';
  }
  const written = missing.reduce((sum, peer) => sum + writtenBy(transfer, peer), 0);
  if (getProgress(task, progress.blockedSince) === 0) setProgress(task, own.written, written);
  if (!isExpired(task)) return 'blocked';
  if (written !== getProgress(task, own.written)) {
    setProgress(task, progress.blockedSince, 0);
    setProgress(task, own.written, written);
    if (!isExpired(task)) return 'blocked';
  }
  failTimeout(task, 'transfer', missing, epoch, seen(missing[0]!));
  return 'done';
}

function grantOf(transfer: Transfer, peer: number): bigint {
  return Atomics.load(transfer.shared.i64, transfer.i64Of(transfer.layout.grants) + peer);
}

function writtenBy(transfer: Transfer, peer: number): number {
  return transfer.shared.f64[transfer.i64Of(transfer.layout.written) + peer]!;
}

function groupStart(transfer: Transfer, index: number): number {
  return transfer.groupsStart + index * group.words;
}
