// SPDX-License-Identifier: Apache-2.0
// How often a figure is measured, and what is made of the samples.

import { alone, type Together } from './bench-world.js';

/** Runs that are not counted: memory is touched and code is compiled for the first time. */
const warmUps = 3;
const fewest = 9;
const most = 101;
/** Once the fewest are taken, no new sample starts after this many milliseconds. */
const defaultBudgetMs = 1500;

export interface RepeatOptions {
  /** The processes that measure together; each sample is the slowest one's. */
  readonly together?: Together;
  readonly budgetMs?: number;
}

/**
 * Repeats `measures`, each of which returns milliseconds, in turns, and returns the samples of each. In turns, because a machine is not
 * equally fast all the time: what is compared must be measured side by side.
 */
export async function repeatTimed(
  measures: readonly (() => Promise<number>)[],
  signal: AbortSignal,
  { together = alone, budgetMs = defaultBudgetMs }: RepeatOptions = {},
): Promise<number[][]> {
  const samples: number[][] = measures.map(() => []);
  const round = async (keep: boolean): Promise<void> => {
    for (const [index, measure] of measures.entries()) {
      signal.throwIfAborted();
      const ms = await together.slowest(await measure());
      if (keep) samples[index]!.push(ms);
    }
  };
  for (let i = 0; i < warmUps; i++) await round(false);
  const began = performance.now();
  // Clocks of processes differ, and all must stop after the same round.
  const goesOn = (): Promise<boolean> => together.agreed(performance.now() - began < budgetMs);
  for (let i = 0; i < most && (i < fewest || (await goesOn())); i++) await round(true);
  return samples;
}

/** The middle of the samples; of an even number the mean of the middle two. */
export function median(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
