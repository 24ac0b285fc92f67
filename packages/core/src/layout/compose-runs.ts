// SPDX-License-Identifier: Apache-2.0
// Nests shards: a split of what a rank already holds, expressed in the coordinates of the whole dimension.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { dimRuns } from './fold-runs.js';
import { endOf, intersectProgressions, orderedCost, type Progression } from './intersect-progressions.js';
import type { RunIntersection } from './intersect-runs.js';
import type { AffineRun, DimRuns } from './runs.js';

/** Runs cannot interleave, so nesting patterns that do not keep step can need many; beyond this a layout is refused. */
const maxRuns = 2 ** 20;

/**
 * `inner` selects from the local index space of `outer`; the result selects the same elements from the dimension.
 *
 * @throws ERR_LAYOUT when nested patterns are so irregular that the result would need more than 2^20 runs.
 */
export function composeRuns(outer: DimRuns, inner: DimRuns): DimRuns {
  if (outer.runs.length === 1 && outer.runs[0]!.count === 1) return shift(inner, outer.runs[0]!.start);
  const found: RunIntersection[] = [];
  let from = 0;
  for (const selected of inner.runs) {
    const end = endOf(selected);
    while (from < outer.runs.length && localEnd(outer.runs[from]!) <= selected.start) from++;
    for (let k = from; k < outer.runs.length && outer.runs[k]!.local < end; k++) {
      const a = selection(selected);
      const b = inverse(outer.runs[k]!);
      if (found.length + orderedCost(a, b) > maxRuns) {
        throw new NcclExtError(
          'ERR_LAYOUT',
          `placements nest a split with step ${selected.stride} in one with blocks of ${b.length}, which needs more than ${maxRuns} runs for one rank`,
          {
            field: 'placements',
            help: 'Let one block size be a multiple of the other times its number of shards.',
          },
        );
      }
      intersectProgressions(a, b, true, found);
    }
  }
  return dimRuns(
    found.map(({ length, count, bLocal, bStride }) => ({ start: bLocal, length, stride: bStride, count })),
  );
}

function shift(runs: DimRuns, by: number): DimRuns {
  if (by === 0) return runs;
  return Object.freeze({
    extent: runs.extent,
    runs: Object.freeze(runs.runs.map((run) => Object.freeze({ ...run, start: run.start + by }))),
  });
}

/** Positions in the outer local space, carrying positions in the inner one. */
function selection({ start, length, stride, count, local }: AffineRun): Progression {
  return { start, length, stride, count, value: local, valueStride: length };
}

/** Positions in the outer local space, carrying global ones. */
function inverse({ start, length, stride, count, local }: AffineRun): Progression {
  return { start: local, length, stride: length, count, value: start, valueStride: stride };
}

function localEnd({ local, length, count }: AffineRun): number {
  return local + length * count;
}
