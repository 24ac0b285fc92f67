// SPDX-License-Identifier: Apache-2.0
// Sizes that no device could index are refused before anything is allocated.

import { NcclExtError } from '@nccl-ext/core';
import { worstCaseRows } from '../memory/worst-case-rows.js';
import type { EpSettings } from './ep-settings.js';

/** Rows are counted in 32 bits. */
const mostRows = 2 ** 31 - 1;

export function requireFeasible(settings: EpSettings): void {
  const { ranks, maxTokensPerRank, topK, map, receiveBudget } = settings;
  const entries = ranks * maxTokensPerRank * topK;
  const expertMajor = map.mostLocal * ranks * maxTokensPerRank;
  const received = receiveBudget === 0 ? worstCaseRows(settings, 'packed') : receiveBudget;
  const largest = Math.max(entries, expertMajor, received);
  if (largest <= mostRows) return;
  const what =
    largest === entries
      ? `ranks x maxTokensPerRank x topK = ${entries} routing entries`
      : largest === expertMajor
        ? `local experts x ranks x maxTokensPerRank = ${expertMajor} rows`
        : `${received} received rows`;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${what} are more than ${mostRows}, what rows are counted in.`,
    {
      field: 'maxTokensPerRank',
      expected: mostRows,
      seen: largest,
      help: 'Lower maxTokensPerRank (send a batch in parts), or spread the experts over more ranks.',
    },
  );
}
