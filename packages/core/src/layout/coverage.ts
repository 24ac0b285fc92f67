// SPDX-License-Identifier: Apache-2.0
// Proves that the ranks together hold every element of a dimension, or finds the first interval that nobody holds.

import { endOf, greatestCommonDivisor } from './intersect-progressions.js';
import type { AffineRun, DimRuns } from './runs.js';

/**
 * The first maximal interval [start, end) of [0, extent) that none of the lists holds, or undefined when every
 * element is held at least once. A sweep over interval starts; where the same progressions go on, one common period
 * proves the rest, so block-cyclic dimensions of any extent are quick.
 *
 * @example
 * ```ts
 * firstUncovered(held.dims[0]!.runs, held.shape[0]!); // [64, 96]: its ranges leave that gap
 * ```
 */
export function firstUncovered(
  lists: readonly DimRuns[],
  extent: number,
): readonly [start: number, end: number] | undefined {
  const waiting = [...new Set(lists)]
    .flatMap(({ runs }) => runs)
    .filter(({ length, count }) => length > 0 && count > 0)
    .sort((x, y) => x.start - y.start);
  const live: Cursor[] = []; // heap by next start; every run in it began at or before `reach`
  let admitted = 0;
  let reach = 0;
  let proof = proofFrom(reach, 0);
  while (reach < extent) {
    const next = waiting[admitted];
    const top = live[0];
    if (next && next.start <= reach && (!top || next.start <= top.start)) {
      admitted++;
      insert(live, { run: next, start: next.start });
      proof = proofFrom(reach, live.length);
    } else if (top && top.start <= reach) {
      reach = Math.max(reach, top.start + top.run.length);
      if (advance(top, reach)) sink(live, 0);
      else {
        removeTop(live);
        proof = proofFrom(reach, live.length);
      }
      if (++proof.steps >= proof.tryAt) {
        if (reach - proof.from >= commonPeriod(live)) {
          reach = Math.max(
            reach,
            live.reduce((least, { run }) => Math.min(least, endOf(run)), extent),
          );
          proof = proofFrom(reach, live.length);
        } else {
          proof.tryAt *= 2;
        }
      }
    } else {
      return [reach, Math.min(extent, next?.start ?? extent, top?.start ?? extent)];
    }
  }
  return undefined;
}

interface Cursor {
  readonly run: AffineRun;
  /** Start of its first interval that ends behind `reach`. */
  start: number;
}

/** Since `from` the live set is the same; when that covers a common period, it covers up to the first end of a live run. */
interface Proof {
  readonly from: number;
  steps: number;
  /** Asked again after twice as many steps, so that asking costs no more than stepping. */
  tryAt: number;
}

function proofFrom(from: number, live: number): Proof {
  return { from, steps: 0, tryAt: 2 * live + 8 };
}

/** Infinity when it passes 2^53: then no extent holds a period. */
function commonPeriod(live: readonly Cursor[]): number {
  let period = 1;
  for (const { run } of live) {
    period *= run.stride / greatestCommonDivisor(period, run.stride);
    if (period > Number.MAX_SAFE_INTEGER) return Number.POSITIVE_INFINITY;
  }
  return period;
}

/** Moves to the first interval that ends behind `reach`; false when there is none. */
function advance(cursor: Cursor, reach: number): boolean {
  const { start, length, stride, count } = cursor.run;
  const index = Math.max(0, Math.floor((reach - start - length) / stride) + 1);
  if (index >= count) return false;
  cursor.start = start + index * stride;
  return true;
}

function insert(heap: Cursor[], cursor: Cursor): void {
  let at = heap.push(cursor) - 1;
  while (at > 0) {
    const parent = (at - 1) >>> 1;
    if (heap[parent]!.start <= cursor.start) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = cursor;
}

function removeTop(heap: Cursor[]): void {
  const last = heap.pop()!;
  if (heap.length > 0) {
    heap[0] = last;
    sink(heap, 0);
  }
}

function sink(heap: Cursor[], from: number): void {
  const cursor = heap[from]!;
  let at = from;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1]!.start < heap[child]!.start) child++;
    if (heap[child]!.start >= cursor.start) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = cursor;
}
