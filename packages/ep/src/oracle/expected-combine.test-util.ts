// SPDX-License-Identifier: Apache-2.0
// The sum of combine, written out from its formula.

import type { EpDType } from '../config/ep-config.js';
import { rounded } from './batches.test-util.js';
import type { ExpectedRank } from './expected-rows.test-util.js';

/**
 * y of token number `token` of `source`, one value: `valueAt(rank, at)` is what row `at` of `rank` holds. `weighted`: rows are multiplied by the
 * weight of their entry (expert-major).
 */
export function expectedSum(
  byRank: readonly ExpectedRank[],
  source: number,
  token: number,
  valueAt: (rank: number, at: number) => number,
  {
    dtype,
    weighted,
    reduction = 'rank',
  }: { dtype: EpDType; weighted: boolean; reduction?: 'rank' | 'token' },
): number {
  const terms = byRank.flatMap(({ rows }, rank) =>
    rows
      .filter((row) => row.source === source && row.token === token)
      .map((row) => {
        const value = valueAt(rank, row.at);
        const { k, weight } = row.entries[0]!;
        return { rank, k, value: weighted ? Math.fround(weight * value) : value };
      }),
  );
  const sum = (values: readonly number[]): number => values.reduce((a, b) => Math.fround(a + b));
  if (terms.length === 0) return 0;
  if (reduction === 'token') return rounded(dtype, sum(terms.sort((a, b) => a.k - b.k).map((t) => t.value)));
  const ranks = [...new Set(terms.map((term) => term.rank))].sort((a, b) => a - b);
  const inner = ranks.map((rank) =>
    sum(
      terms
        .filter((term) => term.rank === rank)
        .sort((a, b) => a.k - b.k)
        .map((term) => term.value),
    ),
  );
  return rounded(dtype, sum(inner.map((value) => rounded(dtype, value))));
}
