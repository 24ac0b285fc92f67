// SPDX-License-Identifier: Apache-2.0
// Brings intervals into the one shortest list of affine runs, so that equal content has equal form and periodic content stays short.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { endOf } from './intersect-progressions.js';
import type { AffineRun, DimRuns } from './runs.js';

/** Equal intervals at equal steps; a single one when `count` is absent. */
export interface RunPiece {
  readonly start: number;
  readonly length: number;
  readonly stride?: number;
  readonly count?: number;
}

interface Run {
  start: number;
  length: number;
  stride: number;
  count: number;
}

/**
 * The runs of a rank that holds `pieces` one after another: local offsets follow the order of the pieces, which must
 * ascend in global order without overlap. Empty pieces are dropped, touching ones joined, equal steps folded.
 *
 * @throws ERR_LAYOUT when the pieces overlap or do not ascend.
 * @example
 * ```ts
 * dimRuns([{ start: 0, length: 2 }, { start: 8, length: 2 }]); // one run: length 2, stride 8, count 2
 * ```
 */
export function dimRuns(pieces: Iterable<RunPiece>): DimRuns {
  let local = 0;
  const runs: AffineRun[] = [];
  for (const { start, length, stride, count } of fold(coalesce(pieces))) {
    runs.push(Object.freeze({ start, length, stride: count === 1 ? length : stride, count, local }));
    local += length * count;
  }
  return Object.freeze({ extent: local, runs: Object.freeze(runs) });
}

/** Elementary intervals of the result never touch. */
function coalesce(pieces: Iterable<RunPiece>): Run[] {
  const out: Run[] = [];
  for (const piece of pieces) {
    let { start, length, count = 1, stride = length } = piece;
    if (length === 0 || count === 0) continue;
    if (stride === length) [length, count] = [length * count, 1];
    const previous = out.at(-1);
    const end = previous ? endOf(previous) : 0;
    if (start < end || (count > 1 && stride < length)) {
      const step =
        start < end ? `starts at ${start}, before ${end}` : `has stride ${stride} below its length ${length}`;
      throw new NcclExtError('ERR_LAYOUT', `pieces must ascend without overlap: one ${step}`, {
        field: 'pieces',
      });
    }
    if (previous === undefined || start > end) {
      out.push({ start, length, stride, count });
      continue;
    }
    if (--previous.count === 0) out.pop();
    out.push({ start: end - previous.length, length: previous.length + length, stride: 0, count: 1 });
    if (count > 1) out.push({ start: start + stride, length, stride, count: count - 1 });
  }
  return out;
}

/**
 * Greedy from the left over elementary intervals. Any stretch of a progression is a progression, so greedy gives the
 * fewest runs, and since it depends on the intervals alone the result is unique.
 */
function fold(runs: readonly Run[]): Run[] {
  const out: Run[] = [];
  for (const run of runs) {
    const previous = out.at(-1);
    const step = previous ? run.start - (previous.start + (previous.count - 1) * previous.stride) : 0;
    if (!previous || previous.length !== run.length || (previous.count > 1 && previous.stride !== step)) {
      out.push(run);
      continue;
    }
    previous.stride = step;
    const taken = run.count === 1 || run.stride === step ? run.count : 1;
    previous.count += taken;
    if (taken < run.count) out.push({ ...run, start: run.start + run.stride, count: run.count - 1 });
  }
  return out;
}
