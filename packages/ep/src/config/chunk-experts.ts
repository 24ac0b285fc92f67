// SPDX-License-Identifier: Apache-2.0
// Contiguous, equal parts of a number of experts, the usual placement.

/** `[r]`: the experts of rank r; the first `count mod ranks` ranks have one more. */
export function chunkExperts(count: number, ranks: number): number[][] {
  let next = 0;
  return Array.from({ length: ranks }, (_, rank) => {
    const length = Math.floor(count / ranks) + (rank < count % ranks ? 1 : 0);
    return Array.from({ length }, () => next++);
  });
}
