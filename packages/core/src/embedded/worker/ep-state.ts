// SPDX-License-Identifier: Apache-2.0
// One operation of expert parallelism while a worker makes progress on it: its call, its group, its handle's memory.

import { callWord, contextWord, descriptorWord, stateWord } from '../ep/ep-words.js';
import { offsetOf } from '../memory/address.js';
import { type EpGroup, floats64At, floatsAt, intsAt, openGroup } from './ep-group.js';
import type { Spaces } from './spaces.js';
import { argument, type Task } from './task.js';

export interface Ep {
  readonly task: Task;
  readonly spaces: Spaces;
  readonly rank: number;
  readonly group: EpGroup;
  /** Words of the call. */
  readonly call: Float64Array;
  /** First word of this rank's context in `group.space`. */
  readonly context: number;
  readonly epoch: number;
  readonly members: readonly number[];
  /** Physical experts of this rank: the first, and how many. */
  readonly firstExpert: number;
  readonly localExperts: number;
}

/** Opens the operation of a task's record: ep(call, slot of the epoch among a graph's parameters, completes). */
export function openEp(task: Task): Ep {
  const { spaces } = task.world;
  const call = floats64At(spaces, argument(task, 1), callWord.words);
  const group = openGroup(spaces, call[callWord.group]!);
  const context = call[callWord.context]!;
  const { rank } = task;
  const members: number[] = [];
  for (let peer = 0; peer < group.ranks; peer++) if (group.active[peer] === 1) members.push(peer);
  return {
    task,
    spaces,
    rank,
    group,
    call,
    context: context < 0 ? -1 : group.contextAt(rank, context),
    epoch: epochOf(task, call),
    members,
    firstExpert: group.firstPhysical[rank]!,
    localExperts: group.firstPhysical[rank + 1]! - group.firstPhysical[rank]!,
  };
}

/** A graph holds no epoch: each launch brings the one that it was made in. */
function epochOf(task: Task, call: Float64Array): number {
  const slot = argument(task, 2);
  if (slot < 0) return call[callWord.epoch]!;
  const { parameters } = task;
  return task.world.spaces.of(parameters).f64[offsetOf(parameters) / 8 + slot]!;
}

/** First word of a peer's context of the same number. */
export function peerContext(ep: Ep, peer: number): number {
  return ep.group.contextAt(peer, ep.call[callWord.context]!);
}

/** A word of the descriptor that `peer` entered with, as copied when all had entered. */
export function entered(ep: Ep, peer: number, word: number): number {
  return ep.group.space.f64[ep.context + contextWord.copies + peer * descriptorWord.words + word]!;
}

/** The tag of this use as a 64-bit integer. */
export function tagOf(ep: Ep): bigint {
  return BigInt(ep.call[callWord.use]!);
}

/** This rank's counts of the handle, as pairs of 32-bit words. */
export interface Counts {
  readonly words: Int32Array;
  readonly experts: number;
  readonly ranks: number;
}

export function countsOf(ep: Ep): Counts {
  const { localExperts, group, call } = ep;
  const entries = 2 * localExperts + group.ranks + 8;
  return {
    words: intsAt(ep.spaces, call[callWord.counts]!, entries * 2),
    experts: localExperts,
    ranks: group.ranks,
  };
}

export function getState(counts: Counts, word: keyof typeof stateWord): number {
  const at = stateIndex(counts, word);
  return counts.words[at + 1]! * 2 ** 32 + (counts.words[at]! >>> 0);
}

export function setState(counts: Counts, word: keyof typeof stateWord, value: number): void {
  const at = stateIndex(counts, word);
  counts.words[at] = value;
  counts.words[at + 1] = Math.floor(value / 2 ** 32);
}

function stateIndex({ experts, ranks }: Counts, word: keyof typeof stateWord): number {
  return (2 * experts + ranks + stateWord[word]) * 2;
}

/** Experts of the snapshot of `peer`, [B, K]. */
export function snapshotOf(ep: Ep, peer: number): Int32Array {
  const length = entered(ep, peer, descriptorWord.tokens) * ep.group.topK;
  return intsAt(ep.spaces, entered(ep, peer, descriptorWord.experts), length);
}

/** Weights that `peer` entered with, [B, K]. */
export function weightsOf(ep: Ep, peer: number): Float32Array {
  const length = entered(ep, peer, descriptorWord.tokens) * ep.group.topK;
  return floatsAt(ep.spaces, entered(ep, peer, descriptorWord.weights), length);
}

/** Slots that `owner` gave to the tokens of `source`, [B, K] for `tokens` of them. */
export function slotsOf(ep: Ep, owner: number, source: number, tokens: number): Int32Array {
  const { maxTokens, topK } = ep.group;
  const slots = owner === ep.rank ? ep.call[callWord.slots]! : entered(ep, owner, descriptorWord.slots);
  return intsAt(ep.spaces, slots + source * maxTokens * topK * 4, tokens * topK);
}

/** The verdict of this rank so far: a code and three details. */
export function condemn(ep: Ep, code: number, a = 0, b = 0, c = 0): void {
  ep.call.set([code, a, b, c], callWord.code);
}
