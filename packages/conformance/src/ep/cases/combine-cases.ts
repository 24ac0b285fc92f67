// SPDX-License-Identifier: Apache-2.0
// Sums: in a stated order, with stated roundings, whatever the numbers.

import { epCase, everyLayout, ragged, uniform } from './base.js';
import type { EpCase } from './ep-case.js';

const zones = everyLayout.filter(({ layout }) => layout === 'expert-major' || layout === 'packed');
const routings = [uniform, ragged, { ids: 'hot' as const }];

export const combineCases: readonly EpCase[] = (['f32', 'f16', 'bf16'] as const).flatMap(
  (dtype): EpCase[] => [
    epCase('ep-combine', `${dtype}, a rounding per rank`, {
      routings,
      steps: 8,
      config: { dtype, topK: 6, hidden: 64 },
    }),
    epCase('ep-combine', `${dtype}, a rounding per token`, {
      handles: zones,
      routings,
      steps: 6,
      config: { dtype, topK: 6, hidden: 64, reduction: 'token' },
    }),
    epCase('ep-combine', `${dtype}, NaNs, infinities, ties and subnormals`, {
      routings: [uniform, { ids: 'one-rank' }],
      steps: 8,
      values: 'edges',
      config: { dtype, topK: 4, hidden: 256, maxTokensPerRank: 4 },
    }),
    epCase('ep-combine', `${dtype}, the same by token`, {
      handles: zones,
      routings: [uniform, { ids: 'one-rank' }],
      steps: 4,
      values: 'edges',
      config: { dtype, topK: 4, hidden: 256, maxTokensPerRank: 4, reduction: 'token' },
    }),
  ],
);
