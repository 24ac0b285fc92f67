// SPDX-License-Identifier: Apache-2.0
// The shared words of an event: which of its records were reached, and when.
//
// Every record of an event has a generation, counted by the owner. Generations of different streams may be reached out of
// order, so one counter would release a waiter early. A cell therefore keeps the latest 64 generations apart:
// slot g mod 64 holds g once g was reached. The owner refuses to reuse a slot while another stream still owes its record.

import type { Space } from '../memory/space.js';

export const eventSlots = 64;

/** Bytes: 64 generations, the word that asks for a message, 64 times. */
export const eventCell = { wanted: 256, times: 320, bytes: 832 } as const;

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

/** When a reached generation was reached. */
export function timeOf(space: Space, offset: number, generation: number): number {
  return space.f64[(offset + eventCell.times) / 8 + (generation % eventSlots)]!;
}

/** Asks for one message after the next record that is reached. */
export function wantMessage(space: Space, offset: number): void {
  Atomics.store(space.i32, (offset + eventCell.wanted) / 4, 1);
}
