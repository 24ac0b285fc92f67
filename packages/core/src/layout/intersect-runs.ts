// SPDX-License-Identifier: Apache-2.0
// Finds what two ranks have in common along one dimension, without walking over the elements.

import { endOf, intersectProgressions, type Progression } from './intersect-progressions.js';
import type { AffineRun, DimRuns } from './runs.js';

/**
 * A progression of equal intervals that both sides hold. For i in [0, count): global [start + i*stride, + length) is
 * local aLocal + i*aStride in a and bLocal + i*bStride in b. Where count is 1 all strides equal `length`.
 */
export interface RunIntersection {
  readonly start: number;
  readonly length: number;
  readonly count: number;
  /** Global step. */
  readonly stride: number;
  readonly aLocal: number;
  readonly aStride: number;
  readonly bLocal: number;
  readonly bStride: number;
}

/**
 * Everything that `a` and `b` both hold, sorted by global start (for runs of a layout that is also the order of
 * aLocal and bLocal). Pieces that are contiguous on all three sides are one; equal pieces at equal steps are folded.
 * Two periodic patterns may give items that interleave; their first starts still ascend. Costs O(runs) where the
 * patterns keep step, and never more than a step per interval of the finer folding.
 *
 * @example
 * ```ts
 * // rank 0 of blockCyclic(2) over 2 against rank 1 of blockCyclic(1) over 2, extent 8: elements 1 and 5
 * intersectRuns(a, b); // [{ start: 1, length: 1, stride: 4, count: 2, aLocal: 1, aStride: 2, bLocal: 0, bStride: 2 }]
 * ```
 */
export function intersectRuns(a: DimRuns, b: DimRuns): readonly RunIntersection[] {
  const as = byStart(a.runs);
  const bs = byStart(b.runs);
  const found: RunIntersection[] = [];
  let from = 0;
  for (const run of as) {
    const end = endOf(run);
    while (from < bs.length && endOf(bs[from]!) <= run.start) from++;
    for (let k = from; k < bs.length && bs[k]!.start < end; k++) {
      intersectProgressions(progression(run), progression(bs[k]!), false, found);
    }
  }
  if (found.length < 2) return found.map(flatten);
  if (!ascends(found)) found.sort((x, y) => x.start - y.start);
  return fold(coalesce(found));
}

function progression(run: AffineRun): Progression {
  const { start, length, stride, count, local } = run;
  return { start, length, stride, count, value: local, valueStride: length };
}

function byStart(runs: readonly AffineRun[]): readonly AffineRun[] {
  const filled = runs.some((run) => run.length === 0 || run.count === 0)
    ? runs.filter((run) => run.length > 0 && run.count > 0)
    : runs;
  return ascends(filled) ? filled : filled.toSorted((x, y) => x.start - y.start);
}

function ascends(list: readonly { readonly start: number }[]): boolean {
  for (let i = 1; i < list.length; i++) if (list[i - 1]!.start > list[i]!.start) return false;
  return true;
}

/** A progression without gaps on any side is one piece. */
function flatten(item: RunIntersection): RunIntersection {
  const { length, count, stride, aStride, bStride } = item;
  return count > 1 && stride === length && aStride === length && bStride === length
    ? single(item, length * count)
    : item;
}

function single(at: Pick<RunIntersection, 'start' | 'aLocal' | 'bLocal'>, length: number): RunIntersection {
  const { start, aLocal, bLocal } = at;
  return { start, length, count: 1, stride: length, aLocal, aStride: length, bLocal, bStride: length };
}

/** The item without its first `skip` intervals, `count` of them. */
function part(item: RunIntersection, skip: number, count: number): RunIntersection {
  const at = {
    start: item.start + skip * item.stride,
    aLocal: item.aLocal + skip * item.aStride,
    bLocal: item.bLocal + skip * item.bStride,
  };
  return count === 1 ? single(at, item.length) : { ...item, ...at, count };
}

/** Joins neighbours that are contiguous in global, a-local and b-local terms. */
function coalesce(items: readonly RunIntersection[]): RunIntersection[] {
  const out: RunIntersection[] = [];
  for (const raw of items) {
    const item = flatten(raw);
    const previous = out.at(-1);
    const tail = previous && part(previous, previous.count - 1, 1);
    if (previous && tail && follows(tail, item)) {
      out.pop();
      if (previous.count > 1) out.push(part(previous, 0, previous.count - 1));
      out.push(single(tail, tail.length + item.length));
      if (item.count > 1) out.push(part(item, 1, item.count - 1));
    } else {
      out.push(item);
    }
  }
  return out;
}

/** Joins neighbours of equal length that continue each other's steps. */
function fold(items: readonly RunIntersection[]): RunIntersection[] {
  const out: RunIntersection[] = [];
  for (const item of items) {
    const previous = out.at(-1);
    const joined = previous && previous.length === item.length ? join(previous, item) : undefined;
    if (joined) out[out.length - 1] = joined;
    else out.push(item);
  }
  return out;
}

function join(x: RunIntersection, y: RunIntersection): RunIntersection | undefined {
  const tail = part(x, x.count - 1, 1);
  const stride = y.start - tail.start;
  const aStride = y.aLocal - tail.aLocal;
  const bStride = y.bLocal - tail.bLocal;
  const keepsStep = (item: RunIntersection): boolean =>
    item.count === 1 || (item.stride === stride && item.aStride === aStride && item.bStride === bStride);
  // Lists whose local order is not their global order could step back; steps stay positive for those who copy.
  return aStride > 0 && bStride > 0 && keepsStep(x) && keepsStep(y)
    ? { ...x, count: x.count + y.count, stride, aStride, bStride }
    : undefined;
}

/** Whether y starts where the single interval x ends, on all three sides. */
function follows(x: RunIntersection, y: RunIntersection): boolean {
  const { length } = x;
  return y.start === x.start + length && y.aLocal === x.aLocal + length && y.bLocal === x.bLocal + length;
}
