// SPDX-License-Identifier: Apache-2.0
// The operation at the head of a stream while a worker makes progress on it, and how it waits.

import { now } from '../control/clock.js';
import { wake } from '../control/wake.js';
import { rankEntry, worldWord } from '../control/world-layout.js';
import type { Space } from '../memory/space.js';
import type { Spaces } from './spaces.js';

/** One world as a worker sees it. */
export interface World {
  readonly spaces: Spaces;
  /** Block and first word of the world's region. */
  readonly space: Space;
  readonly base: number;
  readonly ranks: number;
  readonly timeoutMs: number;
  /** The world that this one was split from in the end, or itself: workers sleep on its counter. */
  readonly root: { readonly space: Space; readonly base: number };
  /** Posts to the thread that owns the world. */
  readonly post: (message: WorldMessage) => void;
}

/** What workers tell the thread that started them. */
export type WorkerMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'detached' }
  /** About the split world `split`; 0 is the world that the workers serve. */
  | { readonly kind: 'world'; readonly split: number; readonly message: WorldMessage };

/** What workers tell the thread that owns a world. */
export type WorldMessage =
  /** The stream's head reached the target. */
  | { readonly kind: 'stream'; readonly stream: number }
  /** A record of the event was reached. */
  | { readonly kind: 'event'; readonly cell: number }
  /** The owner's thread must run a call and let the stream go on. */
  | { readonly kind: 'host'; readonly stream: number; readonly call: number }
  /** The call will not be asked for: its rank is poisoned. */
  | { readonly kind: 'dropped'; readonly call: number };

/** What a step of an operation says. An operation never waits itself: `blocked` is tried again later, by any worker. */
export type Step = 'done' | 'more' | 'blocked';

/** 64-bit floats of a stream's progress area. All are 0 when an operation starts, except `graphPc` inside a graph. */
export const progress = {
  phase: 0,
  /** When the operation could first not go on; its deadline counts from here. */
  blockedSince: 1,
  /** When a delayed operation may start. */
  readyAt: 2,
  /** 1 + the index of the current record of a graph. */
  graphPc: 3,
  /** From here on the operation's own. */
  own: 4,
  words: 16,
} as const;

/** Set anew for each stream; one object per worker. */
export interface Task {
  readonly world: World;
  stream: number;
  rank: number;
  /** First word of the rank's entry. */
  rankBase: number;
  /** The stream's ring region, and the index of its progress area in `ring.f64`. */
  ring: Space;
  ringOffset: number;
  progress: number;
  /** The record: its first element in `record.f64`. */
  record: Space;
  index: number;
  /** Generations that a graph's launch adds to its event records; 0 outside of graphs. */
  parameters: number;
  /** Bytes of work left before the stream is given up for others. */
  budget: number;
  /** Earliest time at which something blocked must be looked at again. */
  wakeAt: number;
}

/** First word of a rank's entry. */
export function rankBase(world: World, rank: number): number {
  return world.base + rankEntry(rank);
}

export function argument(task: Task, position: number): number {
  return task.record.f64[task.index + position]!;
}

export function getProgress(task: Task, field: number): number {
  return task.ring.f64[task.progress + field]!;
}

export function setProgress(task: Task, field: number, value: number): void {
  task.ring.f64[task.progress + field] = value;
}

/** Whether the deadline of a wait has passed, which starts with the first call. Otherwise the worker will look again in time. */
export function isExpired(task: Task, timeoutMs: number = task.world.timeoutMs): boolean {
  const time = now();
  let since = getProgress(task, progress.blockedSince);
  if (since === 0) {
    since = time;
    setProgress(task, progress.blockedSince, time);
  }
  const deadline = since + timeoutMs;
  if (time >= deadline) return true;
  task.wakeAt = Math.min(task.wakeAt, deadline);
  return false;
}

export function wakeWorld({ root }: World): void {
  wake(root.space.i32, root.base);
}

/** Reads the deadline of waits for peers, in milliseconds. */
export function timeoutOf(space: Space, base: number): number {
  return space.f64[base / 2 + worldWord.timeoutF64]!;
}
