// SPDX-License-Identifier: Apache-2.0
// How an operation of expert parallelism waits for members, and what becomes of the group when one does not come.

import type { ErrorRecord } from '../../contract/index.js';
import { errorNumbers } from '../../errors/codes.js';
import { callKinds, callWord, contextWord } from '../ep/ep-words.js';
import { type Ep, peerContext, tagOf } from './ep-state.js';
import { fail, lossAmong, lossRecord, lostRecord, reportError, timeoutRecord } from './failure.js';
import { getProgress, isExpired, progress, setProgress, wakeWorld } from './task.js';

/** Progress of the stream's own area: what the missing members had moved when the wait began. */
const ownMoved = progress.own;

/** Members that have not set `word` to this use. */
export function missing(ep: Ep, word: number): readonly number[] {
  return ep.members.filter((peer) => !hasSet(ep, peer, word));
}

function hasSet(ep: Ep, peer: number, word: number): boolean {
  return Atomics.load(ep.group.space.i64, peerContext(ep, peer) + word) >= tagOf(ep);
}

/** Publishes one of this rank's words for this use. */
export function publish(ep: Ep, word: number): void {
  Atomics.store(ep.group.space.i64, ep.context + word, tagOf(ep));
  wakeWorld(ep.task.world);
}

/** Blocked, unless an absent member is lost or gave up, or the deadline has passed while none of them moved anything. */
export function awaitMembers(ep: Ep, absent: readonly number[], word: number): 'blocked' | 'failed' {
  const { task, group } = ep;
  const loss = lossAmong(task.world, absent, (peer) => hasSet(ep, peer, word));
  if (loss !== undefined) return give(ep, [loss.awaited], lossRecord(task, opOf(ep), loss));
  if (absent.every((peer) => gaveUp(ep, peer))) return leaveWith(ep, absent[0]!);
  const moved = absent.reduce((sum, peer) => sum + group.moved[peer]!, 0);
  if (getProgress(task, progress.blockedSince) === 0) setProgress(task, ownMoved, moved);
  if (!isExpired(task, group.timeoutMs)) return 'blocked';
  if (moved !== getProgress(task, ownMoved)) {
    setProgress(task, progress.blockedSince, 0);
    setProgress(task, ownMoved, moved);
    if (!isExpired(task, group.timeoutMs)) return 'blocked';
  }
  const seen = Atomics.load(group.space.i64, peerContext(ep, absent[0]!) + word);
  const uses = (tag: bigint): bigint => BigInt.asUintN(32, tag);
  const record = timeoutRecord(task, opOf(ep), absent, uses(tagOf(ep)), uses(seen), group.timeoutMs);
  return give(ep, absent, record);
}

export function opOf(ep: Ep): string {
  return callKinds[ep.call[callWord.kind]!]!;
}

/** What operations end with while the group waits for a change of membership, and those of another epoch. */
export function membershipRecord(ep: Ep, peer: number, detail: string): ErrorRecord {
  return {
    code: errorNumbers.ERR_MEMBERSHIP,
    op: opOf(ep),
    rank: ep.rank,
    peer,
    expected: Atomics.load(ep.group.epoch, 0),
    seen: ep.epoch,
    detail: `${opOf(ep)} of rank ${ep.rank} did not take place: ${detail}`,
    help: 'Call changeMembership on every rank that is to take part, and route again.',
  };
}

function gaveUp(ep: Ep, peer: number): boolean {
  return Atomics.load(ep.group.space.i64, peerContext(ep, peer) + contextWord.abandonedI64) >= tagOf(ep);
}

/** Only members are absent that gave up on somebody else. */
function leaveWith(ep: Ep, peer: number): 'failed' {
  if (!ep.group.mask) return give(ep, [peer], lostRecord(ep.task, opOf(ep), peer));
  Atomics.store(ep.group.stale, ep.rank, 1);
  reportError(
    ep.task.ring,
    ep.task.ringOffset,
    membershipRecord(ep, peer, `rank ${peer} gave up on a member`),
  );
  return 'failed';
}

/** With a mask the group waits for a change of its members, without one the rank is of no more use. */
function give(ep: Ep, absent: readonly number[], record: ErrorRecord): 'failed' {
  const { task, group, rank } = ep;
  if (!group.mask) {
    fail(task, record);
    return 'failed';
  }
  for (const peer of absent) Atomics.store(group.observed, rank * group.ranks + peer, 1);
  Atomics.store(group.stale, rank, 1);
  reportError(task.ring, task.ringOffset, {
    ...record,
    help: 'Call changeMembership on the ranks that are left, and route again.',
  });
  return 'failed';
}
