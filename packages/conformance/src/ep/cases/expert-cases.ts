// SPDX-License-Identifier: Apache-2.0
// Experts that are unevenly spread or have replicas.

import { epCase, ragged, uniform } from './base.js';
import type { EpCase } from './ep-case.js';

const routings = [uniform, ragged];
const steps = 8;

export const expertCases: readonly EpCase[] = [
  epCase('ep-experts', '7 experts on 4 ranks', { routings, steps, config: { experts: 7 } }),
  epCase('ep-experts', 'fewer experts than ranks', { ranks: 6, routings, steps, config: { experts: 4 } }),
  epCase('ep-experts', 'ranks without experts, in any order', {
    routings,
    steps,
    config: { experts: { count: 6, placement: [[5, 0, 3], [], [1], [4, 2]] } },
  }),
  epCase('ep-experts', 'replicas taken in turn', {
    routings,
    steps,
    config: {
      experts: {
        count: 4,
        placement: [
          [0, 1],
          [2, 3],
          [0, 3],
          [0, 1, 2],
        ],
      },
    },
  }),
  epCase('ep-experts', 'replicas at home first', {
    routings,
    steps,
    config: {
      experts: {
        count: 4,
        placement: [
          [0, 1],
          [2, 3],
          [0, 3],
          [0, 1, 2],
        ],
        replicaRule: 'local-first',
      },
    },
  }),
  epCase('ep-experts', 'two replicas of an expert on one rank', {
    routings,
    steps,
    config: { experts: { count: 3, placement: [[0, 0, 1], [2], [1, 2], [0]] } },
  }),
  epCase('ep-experts', 'every expert on every rank', {
    routings,
    steps,
    config: {
      experts: {
        count: 3,
        placement: [
          [0, 1, 2],
          [2, 1, 0],
          [1, 0, 2],
          [0, 2, 1],
        ],
        replicaRule: 'local-first',
      },
    },
  }),
];
