// SPDX-License-Identifier: Apache-2.0
// Finds out how many ranks a plan has, and that nobody outside holds anything.

import { NcclExtError } from '@nccl-ext/core';
import { describe } from '@nccl-ext/core/extend';
import { patternOf } from './pattern-of-layout.js';
import type { SideCopy, TensorRequest } from './plan-request.js';
import type { SidePattern } from './side-pattern.js';

/** @throws ERR_INVALID_ARGUMENT when `given` is not a positive integer or a rank lies outside. */
export function checkWorldSize(
  given: number | undefined,
  patterns: readonly SidePattern[],
  tensors: readonly TensorRequest[],
): number {
  const highest = patterns.reduce((most, { maxRank }) => Math.max(most, maxRank), -1);
  const worldSize = given ?? Math.max(1, highest + 1);
  if (!Number.isInteger(worldSize) || worldSize < 1) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `worldSize must be a positive integer, got ${describe(worldSize)}.`,
      {
        field: 'worldSize',
        seen: worldSize,
      },
    );
  }
  if (highest < worldSize) return worldSize;
  const outside = tensors.find((tensor) =>
    [tensor.source, tensor.destination].some((side) => maxRankOf(side) === highest),
  );
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `Rank ${highest} holds ${outside?.name}, but the world has the ranks 0 to ${worldSize - 1}.`,
    { field: 'worldSize', rank: highest, expected: `at least ${highest + 1}`, seen: worldSize },
  );
}

function maxRankOf(side: TensorRequest['source']): number {
  const copies: readonly Pick<SideCopy, 'pattern'>[] = 'mesh' in side ? [{ pattern: patternOf(side) }] : side;
  return copies.reduce((most, { pattern }) => Math.max(most, pattern.maxRank), -1);
}
