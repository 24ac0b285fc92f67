// SPDX-License-Identifier: Apache-2.0
// Wakes workers, and lets them sleep, without ever losing a wake-up.
//
// A worker reads the wake counter, looks at everything, and sleeps only if the counter still has that value. Who changes
// something that may make an operation runnable first writes the change and then raises the counter. `sleepers` only saves
// the costly notification: a worker raises it before it sleeps, so a change that finds it 0 is seen by the comparison.

import { worldWord } from './world-layout.js';

/** Tells workers that something may have become runnable. `base` is the word where the world's region starts. */
export function wake(i32: Int32Array, base: number): void {
  Atomics.add(i32, base + worldWord.wake, 1);
  if (Atomics.exchange(i32, base + worldWord.sleepers, 0) > 0) Atomics.notify(i32, base + worldWord.wake);
}

/** The value to pass to `sleep`, read before looking for work. */
export function wakeCount(i32: Int32Array, base: number): number {
  return Atomics.load(i32, base + worldWord.wake);
}

/** Sleeps until the counter leaves `seen` or `milliseconds` have passed. */
export function sleep(i32: Int32Array, base: number, seen: number, milliseconds: number): void {
  Atomics.add(i32, base + worldWord.sleepers, 1);
  Atomics.wait(i32, base + worldWord.wake, seen, milliseconds);
}
