// SPDX-License-Identifier: Apache-2.0
// Compares what members entered, and reports an operation that some member's verdict has ended.

import type { ErrorRecord } from '../../contract/index.js';
import { errorCodeOf, errorNumbers } from '../../errors/codes.js';
import { agreedNames, callKinds, callWord, contextWord, descriptorWord } from '../ep/ep-words.js';
import { stateFaults } from './ep-prepare.js';
import { condemn, type Ep, entered, peerContext } from './ep-state.js';
import { opOf } from './ep-wait.js';
import { reportError } from './failure.js';

/** Copies the descriptors of all members, which may change once this rank has given its verdict. */
export function copyDescriptors(ep: Ep): void {
  const { f64 } = ep.group.space;
  for (const peer of ep.members) {
    const from = peerContext(ep, peer) + contextWord.descriptor;
    f64.copyWithin(
      ep.context + contextWord.copies + peer * descriptorWord.words,
      from,
      from + descriptorWord.words,
    );
  }
}

/** A bad verdict of this rank when members entered different operations. */
export function compareEntries(ep: Ep): void {
  for (const [field] of agreedNames.entries()) {
    const values = ep.members.map((peer) => entered(ep, peer, field));
    const common = mostCommon(values);
    const odd = values.findIndex((value) => value !== common);
    if (odd < 0) continue;
    condemn(ep, errorNumbers.ERR_DISAGREEMENT, field, ep.members[odd]);
    return;
  }
}

/** Whether every member found its own side in order when it entered. */
export function allSound(ep: Ep): boolean {
  return (
    ep.call[callWord.code] === 0 && ep.members.every((peer) => entered(ep, peer, descriptorWord.code) === 0)
  );
}

export function writeVerdict(ep: Ep): void {
  const at = ep.context + contextWord.verdict;
  for (let i = 0; i < 4; i++) ep.group.space.f64[at + i] = ep.call[callWord.code + i]!;
}

/** True after a bad verdict, which is reported: this rank's own, or that of the first member with one. */
export function reportVerdicts(ep: Ep): boolean {
  const { task, rank, group } = ep;
  const codeOf = (peer: number): number => group.space.f64[peerContext(ep, peer) + contextWord.verdict]!;
  if (ep.call[callWord.code] !== 0) {
    reportError(task.ring, task.ringOffset, recordOf(ep, rank));
    return true;
  }
  const bad = ep.members.find((peer) => codeOf(peer) !== 0);
  if (bad === undefined) return false;
  const cause = recordOf(ep, bad);
  const detail = `rank ${bad} refused ${opOf(ep)}: ${cause.detail}`;
  reportError(task.ring, task.ringOffset, { ...cause, rank, peer: bad, detail });
  return true;
}

function recordOf(ep: Ep, rank: number): ErrorRecord {
  const at = peerContext(ep, rank) + contextWord.verdict;
  const [code, a, b, c] = ep.group.space.f64.subarray(at, at + 4) as unknown as [
    number,
    number,
    number,
    number,
  ];
  const base = { code, op: opOf(ep), rank, peer: -1 };
  switch (errorCodeOf(code)) {
    case 'ERR_ROUTING':
      return {
        ...base,
        expected: `-1 or 0 to ${ep.group.experts - 1}, no id twice in a token`,
        seen: c,
        detail: `top-k position ${b} of token ${a} on rank ${rank} names expert ${c}`,
        help: 'Pass ids of experts, each at most once per token, and -1 where a token goes to fewer experts.',
      };
    case 'ERR_OVERFLOW':
      return {
        ...base,
        expected: b,
        seen: a,
        detail: `${a} rows come to rank ${rank}, which has room for ${b}`,
        help: 'Give more room (a larger budget, or buffers for what counts() says), or choose a policy that drops rows.',
      };
    case 'ERR_DISAGREEMENT':
      return disagreement(ep, rank, a, b);
    default:
      return {
        ...base,
        expected: 'route, dispatch, combine in this order',
        seen: `${opOf(ep)}`,
        detail: `rank ${rank} cannot do ${opOf(ep)}: ${stateFaults[a] ?? ''}`,
        help: 'Route on every rank, dispatch, then combine; the error of an earlier operation is on its own stream.',
      };
  }
}

function disagreement(ep: Ep, rank: number, field: number, odd: number): ErrorRecord {
  const values = ep.members.map((peer) => entered(ep, peer, field));
  const common = mostCommon(values);
  const others = ep.members.filter((_, i) => values[i] !== common);
  const show = (value: number): number | string => (field === 0 ? (callKinds[value] ?? value) : value);
  const names = others.length === 1 ? `rank ${others[0]}` : `ranks ${others.join(', ')}`;
  return {
    code: errorNumbers.ERR_DISAGREEMENT,
    op: opOf(ep),
    rank,
    peer: odd,
    expected: show(common),
    seen: show(entered(ep, odd, field)),
    detail: `${names} and the others enqueued different operations: they differ in ${agreedNames[field]}`,
    help: 'Enqueue the same operations of the same handles in the same order on every rank.',
  };
}

function mostCommon(values: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best))[0];
}
