// SPDX-License-Identifier: Apache-2.0
// One operation of expert parallelism on one rank, as a machine whose phases follow the protocol of contract/ep.ts.
//
// Receivers pull: a rank writes only its own outputs, and reads what members entered with. So nobody can be written to late;
// a rank that gave up may still be read, by members whose operation then fails as well, since it never says that it is done.

import { callKinds, callWord, contextWord, handleStates } from '../ep/ep-words.js';
import { moveCombine } from './ep-combine.js';
import { writeCounters } from './ep-counters.js';
import { moveDispatch } from './ep-dispatch.js';
import { planRows } from './ep-plan.js';
import { describeEntry, isLowLatency, prepare } from './ep-prepare.js';
import { countsOf, type Ep, openEp, setState } from './ep-state.js';
import { abandonUse, beginUse, endUse, holdContext, letGo } from './ep-use.js';
import { allSound, compareEntries, copyDescriptors, reportVerdicts, writeVerdict } from './ep-verdict.js';
import { awaitMembers, membershipRecord, missing, opOf, publish } from './ep-wait.js';
import { reportError } from './failure.js';
import { argument, getProgress, progress, type Step, setProgress, type Task } from './task.js';

/** `over`: the use has ended as it should, which a bad verdict is too. `failed`: it is to be abandoned. */
type Phase = 'next' | 'over' | 'failed' | Exclude<Step, 'done'>;

const completing = [hold, meet, plan, judge, hear, move, settle];
const whole = [admit, begin, enter, ...completing.slice(1)];

export function stepEp(task: Task): Step {
  const ep = openEp(task);
  if (argument(task, 3) === 1 && ep.call[callWord.ended] === 1) return 'done';
  for (;;) {
    const phase = phaseOf(task);
    const outcome = isMember(ep) ? (phase === undefined ? 'over' : phase(ep)) : 'failed';
    if (outcome === 'failed') abandonEp(task);
    else if (outcome === 'over') leave(ep);
    else if (outcome !== 'next') return outcome;
    if (outcome !== 'next') return 'done';
    setProgress(task, progress.phase, getProgress(task, progress.phase) + 1);
    setProgress(task, progress.blockedSince, 0);
  }
}

/** Ends an operation that is not done. */
export function abandonEp(task: Task): void {
  const ep = openEp(task);
  if (ep.context < 0) return;
  // What a graph keeps of its last launch is not this use.
  if (argument(task, 3) !== 1 && getProgress(task, progress.phase) === 0) ep.call.fill(0, callWord.use);
  abandonUse(ep);
}

function phaseOf(task: Task): ((ep: Ep) => Phase) | undefined {
  const phases = argument(task, 3) === 1 ? completing : whole;
  return phases[getProgress(task, progress.phase)];
}

/** A send keeps its context until it is completed. */
function leave(ep: Ep): void {
  if (ep.context < 0) return;
  const sends = ep.call[callWord.sendOnly] === 1 && argument(ep.task, 3) !== 1;
  if (sends) letGo(ep);
  else endUse(ep);
}

function isMember(ep: Ep): boolean {
  const { group, rank } = ep;
  const now = Atomics.load(group.epoch, 0);
  let detail: string | undefined;
  if (group.active[rank] !== 1) detail = `rank ${rank} is not a member since epoch ${now}`;
  else if (now !== ep.epoch) detail = `it belongs to epoch ${ep.epoch}, the group is at epoch ${now}`;
  else if (Atomics.load(group.stale, rank) !== 0) detail = 'the group waits for a change of its members';
  if (detail === undefined) return true;
  reportError(ep.task.ring, ep.task.ringOffset, membershipRecord(ep, -1, detail));
  return false;
}

function admit(ep: Ep): Phase {
  if (ep.context >= 0) return beginUse(ep) ? 'next' : 'blocked';
  ep.call.fill(0, callWord.use);
  return 'next';
}

function hold(ep: Ep): Phase {
  return holdContext(ep) ? 'next' : 'blocked';
}

function begin(ep: Ep): Phase {
  prepare(ep);
  return ep.context < 0 ? 'over' : 'next';
}

function enter(ep: Ep): Phase {
  describeEntry(ep);
  publish(ep, contextWord.enteredI64);
  return ep.call[callWord.sendOnly] === 1 ? 'over' : 'next';
}

function meet(ep: Ep): Phase {
  const absent = missing(ep, contextWord.enteredI64);
  if (absent.length > 0) return awaitMembers(ep, absent, contextWord.enteredI64);
  copyDescriptors(ep);
  compareEntries(ep);
  return 'next';
}

function plan(ep: Ep): Phase {
  const plans = opOf(ep) === (isLowLatency(ep) ? 'dispatch' : 'route');
  if (!plans || !allSound(ep)) return 'next';
  if (ep.task.budget <= 0) return 'more';
  // Another dispatch of the same route may fail after this; its rows are then not those of the outputs.
  setState(countsOf(ep), 'state', handleStates.indexOf(isLowLatency(ep) ? 'routed' : 'none'));
  planRows(ep);
  ep.task.budget -= ep.members.length * ep.group.maxTokens * ep.group.topK * 8;
  return 'next';
}

function judge(ep: Ep): Phase {
  writeVerdict(ep);
  publish(ep, contextWord.verdictI64);
  return 'next';
}

function hear(ep: Ep): Phase {
  const absent = missing(ep, contextWord.verdictI64);
  if (absent.length > 0) return awaitMembers(ep, absent, contextWord.verdictI64);
  return reportVerdicts(ep) ? 'over' : 'next';
}

function move(ep: Ep): Phase {
  const kind = callKinds[ep.call[callWord.kind]!]!;
  if (kind === 'dispatch' && !moveDispatch(ep)) return 'more';
  if (kind === 'combine' && !moveCombine(ep)) return 'more';
  if (kind === 'route' || (kind === 'dispatch' && isLowLatency(ep))) {
    writeCounters(ep);
    setState(countsOf(ep), 'state', handleStates.indexOf('planned'));
  }
  // Whoever has given a verdict on a route has read all of it.
  if (kind === 'route') return 'over';
  publish(ep, contextWord.doneI64);
  return 'next';
}

/** Until all members are done, they may read what this rank brought. */
function settle(ep: Ep): Phase {
  const absent = missing(ep, contextWord.doneI64);
  return absent.length > 0 ? awaitMembers(ep, absent, contextWord.doneI64) : 'over';
}
