// SPDX-License-Identifier: Apache-2.0
// Ranks, experts, top-k, hidden sizes and dtypes away from the usual ones.

import { epCase, ragged, uniform } from './base.js';
import type { EpCase } from './ep-case.js';

const both = [uniform, ragged];

/** The fewest bytes of a row are 16. */
const hiddenSizes = [8, 24, 40, 136, 264, 520, 1000, 2056, 5120, 7168];

export const shapeCases: readonly EpCase[] = [
  ...(['f32', 'f16', 'bf16'] as const).map((dtype) =>
    epCase('ep-shapes', dtype, { routings: both, steps: 8, config: { dtype } }),
  ),
  ...hiddenSizes.map((hidden) =>
    epCase('ep-shapes', `hidden ${hidden}`, {
      routings: both,
      config: { hidden, maxTokensPerRank: 3 },
      reports: [
        'deepseek-ai/DeepEP#154',
        'deepseek-ai/DeepEP#329',
        'deepseek-ai/DeepEP#413',
        'deepseek-ai/DeepEP#458',
        'sgl-project/sglang#19468',
      ],
    }),
  ),
  epCase('ep-shapes', 'hidden 4 of f32', { config: { hidden: 4, dtype: 'f32' }, routings: both }),
  ...[1, 3, 4, 8, 9, 32].map((topK) =>
    epCase('ep-shapes', `top-${topK} of 32`, {
      routings: both,
      config: { topK, experts: 32, maxTokensPerRank: 4 },
    }),
  ),
  ...[1, 2, 3, 5, 8, 12, 16].map((ranks) =>
    epCase('ep-shapes', `${ranks} ranks`, {
      ranks,
      routings: both,
      backward: false,
      config: { experts: 2 * ranks, maxTokensPerRank: 4 },
    }),
  ),
  epCase('ep-shapes', 'one token per rank', { routings: [uniform], config: { maxTokensPerRank: 1 } }),
  epCase('ep-shapes', '256 experts, top-8, 16 tokens', {
    config: { experts: 256, topK: 8, hidden: 128, maxTokensPerRank: 16 },
    routings: [uniform],
  }),
  epCase('ep-shapes', 'one expert for all', {
    ranks: 3,
    config: { experts: 1, topK: 1 },
    routings: both,
  }),
];
