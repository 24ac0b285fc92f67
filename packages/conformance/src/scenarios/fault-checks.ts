// SPDX-License-Identifier: Apache-2.0
// Ranks that send wrong bytes or other plans, or refuse: it is found, and nothing wrong is taken for right.

import { shard } from '@nccl-ext/core';
import type { CheckCase } from '../cases/case.js';
import { line } from '../cases/side.js';
import { streamsOf } from '../run/case-streams.js';
import { type CaseWorld, ownPlaces } from '../run/case-world.js';
import { type CheckContext, errorOf, requireRefusal, requireThat } from '../run/check-context.js';
import { MoveSession } from '../run/move-session.js';
import { planOf } from '../run/plan-of.js';
import {
  check,
  contentOf,
  crossed,
  moveRanks,
  openCrossed,
  requireRefit,
  settleStreams,
} from './crossed-move.js';

export const faultChecks: readonly CheckCase[] = [
  check('faults', 'a flipped bit is found by verify, and the next refit is right', flippedBit, {
    reports: ['vllm-project/vllm#52689'],
  }),
  check('faults', 'a flipped bit without verify is seen by this oracle', flippedBitSeenByOracle),
  check('faults', 'plans that differ between ranks', plansDiffer, {
    reports: ['ai-dynamo/modelexpress#659'],
    spread: true,
  }),
  check('faults', 'verify on one rank only', verifyDiffers, { spread: true }),
  check('faults', 'an agreement that arrives altered', alteredAgreement),
  check('faults', 'a rank that refuses is named, and a second try works', refusesOnce, {
    reports: ['vllm-project/vime#87'],
    spread: true,
  }),
];

async function flippedBit(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = await openCrossed(world, true);
  const streams = streamsOf(world);
  await requireRefit(session, streams, 1);
  context.faultsOf(world).corruptNextMove(1);
  session.enqueueRefit(streams, contentOf(2));
  const errors = await settleStreams(streams);
  const found = errors.filter((error) => error !== undefined);
  requireThat(found.length > 0, 'nobody noticed a flipped bit');
  for (const error of found) requireRefusal(error, { code: 'ERR_VERIFY', peer: 1 });
  await requireRefit(session, streams, 3);
}

async function flippedBitSeenByOracle(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  context.faultsOf(world).corruptNextMove(0);
  const refit = session.enqueueRefit(streams, contentOf(1));
  await Promise.all(streams.map((stream) => stream.synchronize()));
  const difference = refit.difference();
  requireThat(
    difference?.includes('1 of 1536 elements differ') === true,
    `the comparison with the oracle says: ${difference}`,
  );
}

async function plansDiffer(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = new MoveSession(world, { tensors: [crossed] });
  const other = planOf([{ ...crossed, destination: line(2, shard(0), 2) }], world.size, world.topology);
  const errors = await Promise.all(
    session.ranks.map(({ communicator }, place) =>
      errorOf(session.prepareRank(place, communicator.rank === 2 ? { plan: other } : {})),
    ),
  );
  for (const error of errors)
    requireRefusal(error, { code: 'ERR_DISAGREEMENT', peer: 2, says: ['digest', 'rank 2'] });
  await prepareAndRefit(session, world);
}

async function verifyDiffers(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = new MoveSession(world, { tensors: [crossed] });
  const errors = await Promise.all(
    session.ranks.map(({ communicator }, place) =>
      errorOf(session.prepareRank(place, { verify: communicator.rank === 1 })),
    ),
  );
  for (const error of errors)
    requireRefusal(error, { code: 'ERR_DISAGREEMENT', peer: 1, says: ['verify', 'rank 1'] });
}

async function alteredAgreement(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  context.faultsOf(world).disagree(3, 'agree transfer');
  const session = new MoveSession(world, { tensors: [crossed] });
  const errors = await Promise.all(session.ranks.map((_, rank) => errorOf(session.prepareRank(rank))));
  for (const error of errors) requireRefusal(error, { code: 'ERR_DISAGREEMENT', says: ['rank 3'] });
}

async function refusesOnce(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = new MoveSession(world, { tensors: [crossed] });
  const errors = await Promise.all(
    session.ranks.map(({ communicator }, place) =>
      errorOf(session.prepareRank(place, communicator.rank === 3 ? { destinations: {} } : {})),
    ),
  );
  for (const place of ownPlaces(world, [3])) {
    const says = ['destinations["t0"]', 'rank 3'];
    requireRefusal(errors[place], { code: 'ERR_INVALID_ARGUMENT', says });
  }
  for (const place of ownPlaces(world, [0, 1, 2]))
    requireRefusal(errors[place], { code: 'ERR_RANK_LOST', peer: 3, says: ['not bound'] });
  await prepareAndRefit(session, world);
}

/** The ranks are as usable as before. */
async function prepareAndRefit(session: MoveSession, world: CaseWorld): Promise<void> {
  await Promise.all(session.ranks.map((_, rank) => session.prepareRank(rank)));
  await requireRefit(session, streamsOf(world), 1);
}
