// SPDX-License-Identifier: Apache-2.0
// Routings that are uneven, empty, or hot.

import { epCase, everyLayout, uniform } from './base.js';
import type { EpCase } from './ep-case.js';

/** Two tokens per rank; experts 2r and 2r + 1 are on rank r. */
const patterns: readonly (readonly [string, readonly (readonly number[])[]])[] = [
  [
    'both experts of one rank',
    [
      [0, 1],
      [0, 1],
    ],
  ],
  [
    'one expert of two ranks',
    [
      [0, 2],
      [4, 6],
    ],
  ],
  [
    'the second expert only',
    [
      [1, -1],
      [-1, 3],
    ],
  ],
  [
    'the first position empty',
    [
      [-1, 5],
      [-1, 4],
    ],
  ],
  [
    'descending ids',
    [
      [7, 0],
      [6, 1],
    ],
  ],
  [
    'a token that goes nowhere',
    [
      [-1, -1],
      [3, 2],
    ],
  ],
];

export const routingCases: readonly EpCase[] = [
  ...patterns.map(([what, ids]) =>
    epCase('ep-routing', what, {
      routings: [{ ids: 'none', listed: [ids, ids, ids, ids] }],
      ids: 'global',
      config: { debugFill: 0x5a },
      handles: everyLayout,
    }),
  ),
  epCase('ep-routing', 'nothing is routed', { routings: [{ ids: 'none' }], steps: 8 }),
  epCase('ep-routing', 'no rank has tokens', { routings: [{ ids: 'uniform', tokens: [0] }], steps: 8 }),
  epCase('ep-routing', 'a rank has tokens, the others have none', {
    routings: [{ ids: 'uniform', tokens: [0, 6, 0, 0] }],
    steps: 8,
  }),
  epCase('ep-routing', 'every rank has another number of tokens, differently in every step', {
    routings: [{ ids: 'uniform', holes: 10, tokens: 'ragged' }],
    steps: 16,
    reports: ['deepseek-ai/DeepEP#744', 'deepseek-ai/DeepEP#208'],
  }),
  epCase('ep-routing', 'a rank has no tokens in any step', {
    routings: [
      { ids: 'uniform', tokens: [6, 0, 3, 6] },
      { ids: 'hot', tokens: [6, 0, 3, 6] },
    ],
    steps: 16,
    pipelined: true,
    reports: ['sgl-project/sglang#25397', 'deepseek-ai/DeepEP#374', 'uccl-project/uccl#993'],
  }),
  epCase('ep-routing', 'all tokens to one rank', {
    routings: [{ ids: 'one-rank' }],
    steps: 4,
    backward: false,
  }),
  epCase('ep-routing', 'all tokens stay', { routings: [{ ids: 'own-rank' }], steps: 4 }),
  epCase('ep-routing', 'hot experts', { routings: [{ ids: 'hot' }], steps: 4, config: { topK: 4 } }),
  epCase('ep-routing', 'half of all entries are holes', {
    routings: [{ ids: 'uniform', holes: 50 }],
    steps: 8,
    config: { topK: 4 },
  }),
  epCase('ep-routing', 'weights divided by what is live', {
    routings: [
      { ids: 'uniform', holes: 40 },
      { ids: 'uniform', holes: 100 },
    ],
    steps: 8,
    renormalize: true,
    config: { topK: 4, dtype: 'f32' },
  }),
  epCase('ep-routing', 'weights that are NaN, infinite and zero', {
    routings: [{ ...uniform, weights: 'edges' }],
    steps: 8,
    renormalize: true,
  }),
];
