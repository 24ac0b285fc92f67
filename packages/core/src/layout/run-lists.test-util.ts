// SPDX-License-Identifier: Apache-2.0
// Runs and the plain lists of elements that they stand for.

import fc from 'fast-check';
import { type DimRuns, dimRuns } from './runs.js';

/** Global positions in local order, read off the definition of AffineRun. */
export function expand({ runs }: DimRuns): number[] {
  return runs.flatMap((run) =>
    Array.from({ length: run.count }, (_, i) =>
      Array.from({ length: run.length }, (_, x) => run.start + i * run.stride + x),
    ).flat(),
  );
}

/** Runs that hold exactly these ascending positions. */
export const holding = (positions: readonly number[]): DimRuns =>
  dimRuns(positions.map((start) => ({ start, length: 1 })));

const subset = (max: number): fc.Arbitrary<number[]> =>
  fc.uniqueArray(fc.nat(max - 1), { maxLength: max }).map((list) => list.sort((x, y) => x - y));

/** Every so many, a few: what block-cyclic layouts look like, with a ragged end. */
export const periodic = (max: number): fc.Arbitrary<number[]> =>
  fc
    .record({ block: fc.integer({ min: 1, max: 7 }), gap: fc.nat(9), start: fc.nat(20), end: fc.nat(max) })
    .map(({ block, gap, start, end }) =>
      Array.from({ length: max }, (_, i) => i).filter(
        (i) => i >= start && i < end && (i - start) % (block + gap) < block,
      ),
    );

export const positions = (max: number): fc.Arbitrary<number[]> => fc.oneof(subset(max), periodic(max));
