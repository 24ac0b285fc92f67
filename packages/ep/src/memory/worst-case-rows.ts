// SPDX-License-Identifier: Apache-2.0
// The most rows that a rank can receive, whatever is routed.

import type { EpLayout } from '@nccl-ext/core/contract';
import type { EpSettings } from '../config/ep-settings.js';

/**
 * N for the rank with the most local experts, or with `localExperts` of them. flat: every token once. packed: every token once per top-k entry that can be here, and
 * the padding of every expert that can then have a zone. Low latency: the rows of the fixed shapes.
 */
export function worstCaseRows(
  settings: EpSettings,
  layout: EpLayout,
  alignment = 1,
  localExperts: number = settings.map.mostLocal,
): number {
  const { ranks, maxTokensPerRank, topK } = settings;
  const tokens = ranks * maxTokensPerRank;
  if (layout === 'expert-major') return localExperts * tokens;
  if (layout === 'rank-major') return tokens;
  if (localExperts === 0) return 0;
  if (layout === 'flat') return tokens;
  const entries = tokens * Math.min(topK, localExperts);
  return entries + Math.min(localExperts, entries) * (alignment - 1);
}
