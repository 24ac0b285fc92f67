// SPDX-License-Identifier: Apache-2.0
// How an operation fails on a worker: an error record in its stream, and a poisoned rank where peers may be out of step.

import type { ErrorRecord } from '../../contract/index.js';
import { errorNumbers } from '../../errors/codes.js';
import { readErrorText, writeErrorText } from '../control/error-text.js';
import { rankWord, ring } from '../control/world-layout.js';
import type { Space } from '../memory/space.js';
import { rankBase, type Task, type World, wakeWorld } from './task.js';

/** Keeps `record` as the stream's error unless an earlier one has not been handed out; true when it was kept. */
export function reportError(space: Space, ringOffset: number, record: ErrorRecord): boolean {
  const word = (ringOffset + ring.error) / 4;
  if (Atomics.load(space.i32, word) !== 0) return false;
  space.i32[word + 1] = writeErrorText(space.buffer, ringOffset + ring.errorText, record);
  Atomics.store(space.i32, word, 1);
  return true;
}

/** Takes a stream's error, on the thread that owns it. */
export function takeError(space: Space, ringOffset: number): ErrorRecord | undefined {
  const word = (ringOffset + ring.error) / 4;
  if (Atomics.load(space.i32, word) === 0) return undefined;
  const record = readErrorText(space.buffer, ringOffset + ring.errorText, space.i32[word + 1]!);
  Atomics.store(space.i32, word, 0);
  return record;
}

/** Makes a rank unusable; the first reason stays. `base` is the rank's first word. */
export function poisonRank(space: Space, base: number, record: ErrorRecord): void {
  if (Atomics.compareExchange(space.i32, base + rankWord.poisonClaim, 0, 1) !== 0) return;
  const offset = (base + rankWord.textStart) * 4;
  space.i32[base + rankWord.textLength] = writeErrorText(space.buffer, offset, record);
  Atomics.store(space.i32, base + rankWord.poison, record.code);
}

/** Why a rank is unusable; undefined while it is usable. `base` is the rank's first word. */
export function poisonRecord(space: Space, base: number): ErrorRecord | undefined {
  if (Atomics.load(space.i32, base + rankWord.poison) === 0) return undefined;
  const offset = (base + rankWord.textStart) * 4;
  return readErrorText(space.buffer, offset, space.i32[base + rankWord.textLength]!);
}

/** A wait for `missing` ranks took too long. */
export function failTimeout(
  task: Task,
  op: string,
  missing: readonly number[],
  expected: bigint | number,
  seen: bigint | number,
): void {
  fail(task, timeoutRecord(task, op, missing, expected, seen, task.world.timeoutMs));
}

/** The record of a wait of `timeoutMs` for `missing` ranks. */
export function timeoutRecord(
  task: Task,
  op: string,
  missing: readonly number[],
  expected: bigint | number,
  seen: bigint | number,
  timeoutMs: number,
): ErrorRecord {
  const many = missing.length > 1 ? `ranks ${missing.join(', ')}` : `rank ${missing[0] ?? -1}`;
  return {
    code: errorNumbers.ERR_TIMEOUT,
    op,
    rank: task.rank,
    peer: missing[0] ?? -1,
    expected,
    seen,
    detail: `rank ${task.rank} waited ${timeoutMs} ms in ${op} for ${many}`,
    help: 'Check that every rank enqueues the same operations in the same order, or raise the timeout.',
  };
}

function isLost(world: World, peer: number): boolean {
  return Atomics.load(world.space.i32, rankBase(world, peer) + rankWord.lost) !== 0;
}

/** Why a rank that was waited for does not come: it is the lost one itself, or it waited for that one in vain. */
interface Loss {
  readonly awaited: number;
  readonly lost: number;
}

/**
 * What keeps the first of `peers` away, undefined when all may still come. What a rank did before it was lost counts, and it may have
 * done it since the caller looked: `came` looks once more.
 */
export function lossAmong(
  world: World,
  peers: readonly number[],
  came: (peer: number) => boolean,
): Loss | undefined {
  for (const awaited of peers) {
    const loss = lossOf(world, awaited);
    if (loss !== undefined && !came(awaited)) return loss;
  }
  return undefined;
}

function lossOf(world: World, awaited: number): Loss | undefined {
  const reason = poisonRecord(world.space, rankBase(world, awaited));
  // A rank of another world has no number here: who lost it is lost itself.
  if (reason?.code === errorNumbers.ERR_RANK_LOST)
    return { awaited, lost: reason.peer < 0 ? awaited : reason.peer };
  return isLost(world, awaited) ? { awaited, lost: awaited } : undefined;
}

/** A rank that this one waited for will not come. */
export function failLost(task: Task, op: string, loss: Loss): void {
  fail(task, lossRecord(task, op, loss));
}

/** The record of {@link failLost}. */
export function lossRecord(task: Task, op: string, { awaited, lost }: Loss): ErrorRecord {
  const record = lostRecord(task, op, lost);
  const detail = `rank ${task.rank} waited in ${op} for rank ${awaited}, which lost rank ${lost}`;
  return awaited === lost ? record : { ...record, detail };
}

/** The record of a wait for a rank that will not come; `name` where it is not a rank of this world. */
export function lostRecord(task: Task, op: string, peer: number, name = `rank ${peer}`): ErrorRecord {
  return {
    code: errorNumbers.ERR_RANK_LOST,
    op,
    rank: task.rank,
    peer,
    expected: 'a rank that takes part',
    seen: 'a rank that failed, was aborted or disposed',
    detail: `rank ${task.rank} waited in ${op} for ${name}, which failed, was aborted or disposed`,
    help: 'Dispose the remaining ranks and make a new world.',
  };
}

/** Something that cannot happen did. */
export function failInternal(task: Task, op: string, cause: unknown): void {
  fail(task, {
    code: errorNumbers.ERR_INTERNAL,
    op,
    rank: task.rank,
    peer: -1,
    expected: '',
    seen: '',
    detail: `${op} failed inside the embedded backend: ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}`,
  });
}

/** Ends the stream's operation with `record` and makes its rank unusable. Who waits for the rank may have to know. */
export function fail(task: Task, record: ErrorRecord): void {
  reportError(task.ring, task.ringOffset, record);
  poisonRank(task.world.space, task.rankBase, record);
  wakeWorld(task.world);
}
