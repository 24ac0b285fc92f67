// SPDX-License-Identifier: Apache-2.0
// Fixed budgets: rows that do not fit are dropped as the policy says, and demand is reported as if there were room.

import { epCase, highThroughput, ragged } from './base.js';
import type { EpCase, RoutingSpec } from './ep-case.js';

const routings: readonly RoutingSpec[] = [
  { ids: 'uniform' },
  ragged,
  { ids: 'one-rank' },
  { ids: 'hot', weights: 'edges' },
];
const reports = [
  'marin-community/marin#7331',
  'NVIDIA/TransformerEngine#3035',
  'NVIDIA/TransformerEngine#3277',
  'NVIDIA/Megatron-LM#6229',
];

export const budgetCases: readonly EpCase[] = [
  epCase('ep-budgets', 'a budget that is never reached', {
    handles: highThroughput,
    routings,
    steps: 8,
    backward: true,
    config: { receiveBudget: 96 },
  }),
  ...(['drop-by-source', 'drop-by-weight'] as const).flatMap((overflow) =>
    highThroughput.flatMap((handle) =>
      [1, 5, 9, 16].map((receiveBudget) =>
        epCase('ep-budgets', `${handle.layout}, ${overflow} beyond ${receiveBudget} rows`, {
          handles: [handle],
          routings,
          backward: true,
          config: { receiveBudget, overflow },
          reports,
        }),
      ),
    ),
  ),
  ...[2, 8, 16].map((alignment) =>
    epCase('ep-budgets', `zones of ${alignment} in 16 rows`, {
      handles: [{ layout: 'packed', alignment }],
      routings,
      config: { receiveBudget: 16, overflow: 'drop-by-weight', topK: 4 },
    }),
  ),
  epCase('ep-budgets', 'phantom rows behind a deep overflow are not touched', {
    handles: highThroughput,
    routings: [{ ids: 'one-rank' }, { ids: 'uniform', tokens: [0, 1, 0, 0] }],
    steps: 6,
    config: { receiveBudget: 8, overflow: 'drop-by-source', maxTokensPerRank: 16 },
  }),
  epCase('ep-budgets', 'steps with and without drops, without a wait between', {
    handles: highThroughput,
    routings,
    steps: 16,
    pipelined: true,
    config: { receiveBudget: 9, overflow: 'drop-by-weight' },
  }),
];
