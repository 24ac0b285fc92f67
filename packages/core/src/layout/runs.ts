// SPDX-License-Identifier: Apache-2.0
// What one rank holds of one tensor dimension, written as few arithmetic progressions of intervals.

/**
 * Equal intervals at equal steps. For i in [0, count): global [start + i*stride, + length) is local
 * [local + i*length, + length). Units are elements of the dimension.
 */
export interface AffineRun {
  readonly start: number;
  readonly length: number;
  /** At least `length`; equal to it where count is 1. */
  readonly stride: number;
  readonly count: number;
  readonly local: number;
}

/**
 * What one coordinate holds of one dimension: sorted by local offset, local offsets dense from 0 to `extent`.
 * Runs of a layout also ascend in global order, never touch and are folded: the form is unique for its content.
 */
export interface DimRuns {
  /** Local extent. */
  readonly extent: number;
  readonly runs: readonly AffineRun[];
}

/** The global position of a local one in [0, extent). */
export function localToGlobal({ runs }: DimRuns, local: number): number {
  const run = runs[lastAtMost(runs, 'local', local)]!;
  const inside = local - run.local;
  const index = Math.floor(inside / run.length);
  return run.start + index * run.stride + (inside - index * run.length);
}

/** The local position of a global one, or undefined when it is not held. Expects runs that ascend in global order. */
export function globalToLocal({ runs }: DimRuns, global: number): number | undefined {
  const run = runs[lastAtMost(runs, 'start', global)];
  if (run === undefined) return undefined;
  const index = Math.min(run.count - 1, Math.floor((global - run.start) / run.stride));
  const inside = global - run.start - index * run.stride;
  return inside < run.length ? run.local + index * run.length + inside : undefined;
}

/** Index of the last run whose `key` is at most `value`; -1 when there is none. */
function lastAtMost(runs: readonly AffineRun[], key: 'start' | 'local', value: number): number {
  let low = 0;
  let high = runs.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (runs[middle]![key] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export { firstUncovered } from './coverage.js';
export { dimRuns, type RunPiece } from './fold-runs.js';
export { intersectRuns, type RunIntersection } from './intersect-runs.js';
