// SPDX-License-Identifier: Apache-2.0
// Groups whose options differ between ranks: refused on every rank, by the name of the option.

import { createEpGroup, type EpConfig } from '@nccl-ext/ep';
import type { CheckCase } from '../../cases/case.js';
import { type CheckContext, errorOf, requireRefusal } from '../../run/check-context.js';
import { check } from '../../scenarios/crossed-move.js';
import { smallConfig } from '../cases/base.js';
import { checkRanks } from './steps.js';

const differing: readonly (readonly [string, Partial<EpConfig>])[] = [
  ['experts', { experts: 9 }],
  [
    'placement',
    {
      experts: {
        count: 8,
        placement: [
          [0, 1],
          [2, 3],
          [4, 5],
          [7, 6],
        ],
      },
    },
  ],
  [
    'replicaRule',
    {
      experts: {
        count: 8,
        placement: [
          [0, 1],
          [2, 3],
          [4, 5],
          [6, 7],
        ],
        replicaRule: 'local-first',
      },
    },
  ],
  ['topK', { topK: 3 }],
  ['hidden', { hidden: 24 }],
  ['dtype', { dtype: 'f16' }],
  ['maxTokensPerRank', { maxTokensPerRank: 7 }],
  ['receiveBudget', { receiveBudget: 16 }],
  ['overflow', { receiveBudget: 16, overflow: 'drop-by-source' }],
  ['reduction', { reduction: 'token' }],
  ['contexts', { contexts: 5 }],
  ['timeoutMs', { timeoutMs: 1234 }],
  ['mask', { mask: true }],
  ['debugFill', { debugFill: 7 }],
];

export const agreementChecks: readonly CheckCase[] = [
  ...differing.map(([field, change]) =>
    check('ep-refusals', `ranks that differ in ${field}`, (context) => differs(context, field, change)),
  ),
  check('ep-refusals', 'a configuration that one rank refuses', oneRefuses),
];

async function differs(context: CheckContext, field: string, change: Partial<EpConfig>): Promise<void> {
  const errors = await createAll(context, change);
  // Several fields may follow from one option; all of them are named, or the first is.
  for (const error of errors) requireRefusal(error, { code: 'ERR_DISAGREEMENT', says: ['rank 2'] });
  if (field !== 'overflow')
    for (const error of errors) requireRefusal(error, { code: 'ERR_DISAGREEMENT', says: [field] });
}

async function oneRefuses(context: CheckContext): Promise<void> {
  const errors = await createAll(context, { hidden: 7 });
  for (const [rank, error] of errors.entries()) {
    if (rank === 2) requireRefusal(error, { code: 'ERR_INVALID_ARGUMENT', says: ['hidden', '16 bytes'] });
    else requireRefusal(error, { code: 'ERR_RANK_LOST', peer: 2 });
  }
}

/** Rank 2 passes something else. */
async function createAll(context: CheckContext, change: Partial<EpConfig>): Promise<readonly unknown[]> {
  const world = await context.fresh({ ranks: checkRanks });
  return Promise.all(
    world.ranks.map((communicator, rank) =>
      errorOf(createEpGroup(communicator, rank === 2 ? { ...smallConfig, ...change } : smallConfig)),
    ),
  );
}
