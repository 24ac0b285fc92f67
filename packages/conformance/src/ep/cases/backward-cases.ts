// SPDX-License-Identifier: Apache-2.0
// Gradients: to every row of a token and back, by the routing that is there.

import { epCase, everyLayout, highThroughput, ragged, uniform } from './base.js';
import type { EpCase } from './ep-case.js';

const more = { handles: highThroughput, backward: true } as const;

export const backwardCases: readonly EpCase[] = [
  ...highThroughput.flatMap((handle) =>
    ([1, 2, 6] as const).map((topK) =>
      epCase('ep-backward', `${handle.layout}, top-${topK}`, {
        ...more,
        handles: [handle],
        routings: [uniform, ragged, { ids: 'hot' }],
        config: { topK },
      }),
    ),
  ),
  ...(['f32', 'f16', 'bf16'] as const).map((dtype) =>
    epCase('ep-backward', `${dtype}, hard numbers`, {
      ...more,
      routings: [uniform, ragged],
      steps: 4,
      values: 'edges',
      config: { dtype, topK: 4, hidden: 128 },
    }),
  ),
  epCase('ep-backward', 'ids of 64 bits', { ...more, index: 'i64', routings: [uniform, ragged] }),
  epCase('ep-backward', 'nobody receives anything', {
    ...more,
    routings: [{ ids: 'none' }],
    exactRows: true,
  }),
  epCase('ep-backward', 'replicas and ranks without experts', {
    ...more,
    routings: [uniform, ragged],
    steps: 4,
    config: { experts: { count: 4, placement: [[0, 1], [], [0, 3, 2], [2, 0]] }, topK: 3 },
  }),
  epCase('ep-backward', 'one rounding per token', {
    handles: everyLayout.slice(3),
    backward: true,
    routings: [uniform, { ids: 'hot' }],
    steps: 4,
    config: { topK: 6, reduction: 'token' },
  }),
];
