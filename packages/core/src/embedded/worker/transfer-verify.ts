// SPDX-License-Identifier: Apache-2.0
// The last phase of a verified transfer: hashes what arrived and compares it with what each sender says it wrote.

import { errorNumbers } from '../../errors/codes.js';
import { offsetOf } from '../memory/address.js';
import { check, hashSlot, header, move } from '../transfer/program-layout.js';
import { reportError } from './failure.js';
import { hashMove } from './move-step.js';
import { getProgress, type Step, setProgress, type Task } from './task.js';
import { own, type Transfer } from './transfer-state.js';

/** Works through the checks within the budget. A difference is an error of this stream; the rank stays usable. */
export function stepVerify(task: Task, transfer: Transfer): 'next' | Step {
  const { program, start } = transfer;
  const checks = program.f64[start + header.checks]!;
  const first = offsetOf(program.f64[start + header.checksAddress]!) / 8;
  while (getProgress(task, own.check) < checks) {
    if (task.budget <= 0) return 'more';
    const at = first + getProgress(task, own.check) * check.words;
    if (getProgress(task, own.move) === 0) setProgress(task, own.move, program.f64[at + check.firstMove]!);
    if (!hashArrived(task, transfer, at)) return 'more';
    compare(task, transfer, at);
    for (const field of [own.move, own.run, own.unit, own.hashed, own.sumI64]) setProgress(task, field, 0);
    setProgress(task, own.check, getProgress(task, own.check) + 1);
  }
  return 'next';
}

/** Hashes the moves of a check; true when all are in. */
function hashArrived(task: Task, transfer: Transfer, at: number): boolean {
  const { program, start } = transfer;
  const moves = offsetOf(program.f64[start + header.arrivedMovesAddress]!) / 8;
  const end = program.f64[at + check.endMove]!;
  let current = getProgress(task, own.move);
  while (current < end && task.budget > 0) {
    const cursor = { run: getProgress(task, own.run), unit: getProgress(task, own.unit) };
    const hashed = getProgress(task, own.hashed);
    const index = moves + current * move.words;
    const sum = (task.progress + own.sumI64) * 2;
    const step = hashMove(task.world.spaces, program, index, cursor, task.budget, hashed, task.ring, sum);
    task.budget -= step.cost;
    setProgress(task, own.hashed, hashed + step.words);
    setProgress(task, own.run, step.over ? 0 : cursor.run);
    setProgress(task, own.unit, step.over ? 0 : cursor.unit);
    if (step.over) setProgress(task, own.move, ++current);
  }
  return current === end;
}

function compare(task: Task, transfer: Transfer, at: number): void {
  const { f64 } = transfer.program;
  const hashAddress = f64[at + check.hashAddress]!;
  const sent = task.world.spaces.of(hashAddress).i64[offsetOf(hashAddress) / 8 + hashSlot.sumI64]!;
  const arrived = task.ring.i64[task.progress + own.sumI64]!;
  if (sent === arrived) return;
  setProgress(task, own.failed, 1);
  const sender = f64[at + check.sender]!;
  const stage = f64[at + check.stage] === 0 ? 'sent' : 'forwarded';
  reportError(task.ring, task.ringOffset, {
    code: errorNumbers.ERR_VERIFY,
    op: 'transfer',
    rank: task.rank,
    peer: sender,
    expected: BigInt.asUintN(64, sent),
    seen: BigInt.asUintN(64, arrived),
    detail: `tensor ${f64[at + check.tensor]} as ${stage} by rank ${sender} arrived on rank ${task.rank} with other bytes`,
    help: 'Send it again; if that fails too, suspect memory or a program that writes to the destination.',
  });
}
