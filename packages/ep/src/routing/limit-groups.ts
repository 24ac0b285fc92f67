// SPDX-License-Identifier: Apache-2.0
// Choice among the best groups of experts only, so that a token travels to few nodes (DeepSeek-V3's node-limited routing).

import { requireObject } from '@nccl-ext/core/extend';
import { invalid, requireCount } from '../config/require-values.js';

export interface GroupLimit {
  /** Groups: contiguous, equal parts of the experts. */
  readonly count: number;
  /** Groups that a token's experts are in at most. */
  readonly limit: number;
  /** A group's score: that of its best expert, or the sum of its two best (default). */
  readonly scoreOf?: 'max' | 'top2-sum' | undefined;
}

/** Sets the values of experts outside the best groups to minus infinity; of equal groups those with lower numbers stay. */
export function limitGroups(choice: Float64Array, k: number, groups: GroupLimit): void {
  requireObject('groups', groups);
  const { count, limit, scoreOf = 'top2-sum' } = groups;
  requireCount('groups.count', count, 1, choice.length);
  requireCount('groups.limit', limit, 1, count);
  if (choice.length % count !== 0)
    throw invalid('groups.count', `must divide the number of experts, ${choice.length}`, count);
  if (scoreOf !== 'max' && scoreOf !== 'top2-sum')
    throw invalid('groups.scoreOf', 'must be max or top2-sum', scoreOf);
  const size = choice.length / count;
  if (k > limit * size)
    throw invalid('k', `must be at most ${limit * size}, the experts of ${limit} groups`, k);
  const scores = Array.from({ length: count }, (_, group) => {
    const [first, second] = twoLargest(choice.subarray(group * size, (group + 1) * size));
    return scoreOf === 'max' || size === 1 ? first : first + second;
  });
  const order = [...scores.keys()].sort((a, b) => compareDescending(scores[a]!, scores[b]!) || a - b);
  for (const group of order.slice(limit))
    choice.fill(Number.NEGATIVE_INFINITY, group * size, (group + 1) * size);
}

// Not a difference: equal infinities would give NaN.
function compareDescending(a: number, b: number): number {
  return a === b ? 0 : a > b ? -1 : 1;
}

function twoLargest(values: Float64Array): readonly [number, number] {
  let first = Number.NEGATIVE_INFINITY;
  let second = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value > first) {
      second = first;
      first = value;
    } else if (value > second) second = value;
  }
  return [first, second];
}
