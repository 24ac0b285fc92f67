// SPDX-License-Identifier: Apache-2.0
// Writes nested loops of equal elements as moves: one contiguous run inside and at most three loops around it.

import { moveLoops } from '@nccl-ext/core/contract';

/** Moves between two places; `moveLoops` counts and strides each, outermost first. */
export interface MoveList {
  readonly source: number[];
  readonly destination: number[];
  /** Elements. */
  readonly inner: number[];
  readonly counts: number[];
  readonly sourceStrides: number[];
  readonly destinationStrides: number[];
}

/** `n` steps of so many bytes. */
export interface Loop {
  readonly n: number;
  readonly source: number;
  readonly destination: number;
}

/**
 * Appends the moves of a box. Loops may come in any order and are reordered, so that whatever is contiguous on both
 * sides becomes one run; loops beyond the third are unrolled, the shortest ones first.
 */
export function pushBox(
  list: MoveList,
  source: number,
  destination: number,
  loops: readonly Loop[],
  sourceBytes: number,
  destinationBytes: number,
): void {
  const order = loops
    .filter(({ n }) => n > 1)
    .sort((x, y) => x.destination - y.destination || x.source - y.source);
  let inner = 1;
  const outer: Loop[] = []; // innermost first
  for (const loop of order) {
    const within = outer.at(-1);
    if (!within && loop.source === inner * sourceBytes && loop.destination === inner * destinationBytes) {
      inner *= loop.n;
    } else if (
      within &&
      loop.source === within.n * within.source &&
      loop.destination === within.n * within.destination
    ) {
      outer[outer.length - 1] = { ...within, n: within.n * loop.n };
    } else {
      outer.push(loop);
    }
  }
  outer.reverse();
  unroll(list, source, destination, inner, outer);
}

function unroll(
  list: MoveList,
  source: number,
  destination: number,
  inner: number,
  loops: readonly Loop[],
): void {
  if (loops.length > moveLoops) {
    const shortest = loops.reduce((best, loop, i) => (loop.n < loops[best]!.n ? i : best), 0);
    const { n, ...step } = loops[shortest]!;
    const rest = loops.filter((_, i) => i !== shortest);
    for (let i = 0; i < n; i++) {
      unroll(list, source + i * step.source, destination + i * step.destination, inner, rest);
    }
    return;
  }
  list.source.push(source);
  list.destination.push(destination);
  list.inner.push(inner);
  for (let k = loops.length; k < moveLoops; k++) {
    list.counts.push(1);
    list.sourceStrides.push(0);
    list.destinationStrides.push(0);
  }
  for (const loop of loops) {
    list.counts.push(loop.n);
    list.sourceStrides.push(loop.source);
    list.destinationStrides.push(loop.destination);
  }
}
