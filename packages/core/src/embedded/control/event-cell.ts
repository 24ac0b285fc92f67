// SPDX-License-Identifier: Apache-2.0
// The shared words of an event: which of its records were reached, and when.
//
// Every record of an event has a generation, counted by the owner. Generations of different streams may be reached out of
// order, so one counter would release a waiter early. A cell therefore keeps the latest 64 generations apart:
// slot g mod 64 holds g once g was reached. The owner refuses to reuse a slot while another stream still owes its record.

import type { Space } from '../memory/space.js';

export const eventSlots = 64;

/** Bytes: 64 generations, the word that asks for a message, the owner's number in the first world, 64 times, the first generation of each slot that was drained. */
export const eventCell = { wanted: 256, origin: 260, times: 320, drained: 832, bytes: 1088 } as const;

/** The owner's number in the first world; the owner's own words are another's once it is gone. */
export function originOf(space: Space, offset: number): number {
  return space.i32[(offset + eventCell.origin) / 4]!;
}

/** Whether generation `generation` was reached. Generation 0 is before every record. */
export function isReached(space: Space, offset: number, generation: number): boolean {
  if (generation === 0) return true;
  const seen = Atomics.load(space.i32, offset / 4 + (generation % eventSlots));
  return ((seen - generation) | 0) >= 0;
}

/** Marks a generation as reached at `time` (milliseconds, see clock.ts); true when the owner wants to hear of it. */
export function reach(space: Space, offset: number, generation: number, time: number): boolean {
  const slot = generation % eventSlots;
  space.f64[(offset + eventCell.times) / 8 + slot] = time;
  Atomics.store(space.i32, offset / 4 + slot, generation | 0);
  return Atomics.compareExchange(space.i32, (offset + eventCell.wanted) / 4, 1, 0) === 1;
}

/**
 * Says, before a generation is reached, that the work before it was not done. Its rank is unusable for good: that of later ones of the
 * slot is not done either.
 */
export function markDrained(space: Space, offset: number, generation: number): void {
  const word = (offset + eventCell.drained) / 4 + (generation % eventSlots);
  Atomics.compareExchange(space.i32, word, 0, generation | 0);
}

/** Whether a generation was reached, and by work done. */
export function isDone(space: Space, offset: number, generation: number): boolean {
  if (!isReached(space, offset, generation)) return false;
  const first = Atomics.load(space.i32, (offset + eventCell.drained) / 4 + (generation % eventSlots));
  return generation === 0 || first === 0 || ((generation - first) | 0) < 0;
}

/** When a reached generation was reached. */
export function timeOf(space: Space, offset: number, generation: number): number {
  return space.f64[(offset + eventCell.times) / 8 + (generation % eventSlots)]!;
}

/** Asks for one message after the next record that is reached. */
export function wantMessage(space: Space, offset: number): void {
  Atomics.store(space.i32, (offset + eventCell.wanted) / 4, 1);
}
