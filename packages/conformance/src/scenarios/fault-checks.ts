// SPDX-License-Identifier: Apache-2.0
// Ranks that are missing, late, lying or gone: the others learn who it is, in time, and nothing wrong is taken for right.

import { shard, type World } from '@nccl-ext/core';
import type { CheckCase } from '../cases/case.js';
import { line } from '../cases/side.js';
import { streamsOf } from '../run/case-streams.js';
import {
  type CheckContext,
  errorOf,
  expectRefusal,
  requireRefusal,
  requireThat,
} from '../run/check-context.js';
import { MoveSession } from '../run/move-session.js';
import { planOf } from '../run/plan-of.js';
import {
  check,
  contentOf,
  crossed,
  destinationRanks,
  moveRanks,
  openCrossed,
  requireRefit,
  requireUntouched,
  settleStreams,
  sourceRanks,
} from './crossed-move.js';

/** Deadline in worlds where a rank is missing. */
const timeoutMs = 300;

export const faultChecks: readonly CheckCase[] = [
  check('faults', 'a rank that never prepares is named', neverPrepares, {
    reports: ['huggingface/trl#6913', 'NVIDIA-NeMo/RL#3720'],
  }),
  check(
    'faults',
    'a source that never comes is named',
    (context) => neverComes(context, 0, destinationRanks),
    {
      reports: ['huggingface/trl#6913', 'huggingface/trl#2923'],
    },
  ),
  check(
    'faults',
    'a destination that never comes is named',
    (context) => neverComes(context, 2, sourceRanks),
    {
      reports: ['huggingface/trl#6913'],
    },
  ),
  check('faults', 'a rank that is late is waited for', late),
  check('faults', 'a rank that leaves is named at once', leaves),
  check('faults', 'a flipped bit is found by verify, and the next refit is right', flippedBit, {
    reports: ['vllm-project/vllm#52689'],
  }),
  check('faults', 'a flipped bit without verify is seen by this oracle', flippedBitSeenByOracle),
  check('faults', 'plans that differ between ranks', plansDiffer, {
    reports: ['ai-dynamo/modelexpress#659'],
  }),
  check('faults', 'verify on one rank only', verifyDiffers),
  check('faults', 'an agreement that arrives altered', alteredAgreement),
  check('faults', 'a rank that refuses is named, and a second try works', refusesOnce, {
    reports: ['vllm-project/vime#87'],
  }),
];

async function neverPrepares(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks, timeoutMs });
  const session = new MoveSession(world, { tensors: [crossed] });
  context.faultsOf(world).stop(3);
  const calls = session.ranks.map((_, rank) => errorOf(session.prepareRank(rank)));
  for (const error of await Promise.all(calls.slice(0, 3)))
    requireRefusal(error, { code: 'ERR_TIMEOUT', peer: 3, says: ['rank 3'] });
}

async function neverComes(context: CheckContext, missing: number, waiting: readonly number[]): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks, timeoutMs });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  await requireRefit(session, streams, 1);
  const { guard } = contentOf(2);
  for (const rank of destinationRanks) streams[rank]!.fill(session.ranks[rank]!.destination.buffer!, guard);
  await Promise.all(streams.map((stream) => stream.synchronize()));

  context.faultsOf(world).stop(missing);
  const began = performance.now();
  streams.forEach((stream, rank) => {
    session.enqueueMove(rank, stream);
  });
  const errors = await settleStreams(waiting.map((rank) => streams[rank]!));
  const ms = performance.now() - began;
  for (const error of errors)
    requireRefusal(error, { code: 'ERR_TIMEOUT', peer: missing, says: [`rank ${missing}`] });
  requireThat(
    ms < 20 * timeoutMs,
    `the error came after ${Math.round(ms)} ms; the deadline is ${timeoutMs} ms`,
  );
  await expectRefusal(
    async () => {
      session.enqueueMove(waiting[0]!, streams[waiting[0]!]!);
      await streams[waiting[0]!]!.synchronize();
    },
    { code: 'ERR_POISONED' },
  );
  if (missing !== 2) return;

  // Its stream never came to the operation, so nobody may have written there.
  const bytes = session.ranks[2]!.destination.buffer!.view('u8');
  requireUntouched(bytes, guard, 'the destination of the rank that never came');
}

async function late(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  for (const rank of [1, 2]) {
    context.faultsOf(world).delay(rank, 20);
    await requireRefit(session, streams, rank);
    context.faultsOf(world).delay(rank, 0);
  }
}

async function leaves(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks, timeoutMs: 20_000 });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  const began = performance.now();
  for (const rank of [1, 2, 3]) session.enqueueMove(rank, streams[rank]!);
  world.ranks[0]!.abort('trainer restarts');
  for (const error of await settleStreams(destinationRanks.map((rank) => streams[rank]!)))
    requireRefusal(error, { code: 'ERR_RANK_LOST', peer: 0 });
  const ms = performance.now() - began;
  requireThat(ms < 10_000, `the error came after ${Math.round(ms)} ms, as if by the deadline`);
}

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
    session.ranks.map((_, rank) => errorOf(session.prepareRank(rank, rank === 2 ? { plan: other } : {}))),
  );
  for (const error of errors)
    requireRefusal(error, { code: 'ERR_DISAGREEMENT', peer: 2, says: ['digest', 'rank 2'] });
  await prepareAndRefit(session, world);
}

async function verifyDiffers(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = new MoveSession(world, { tensors: [crossed] });
  const errors = await Promise.all(
    session.ranks.map((_, rank) => errorOf(session.prepareRank(rank, { verify: rank === 1 }))),
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
    session.ranks.map((_, rank) =>
      errorOf(session.prepareRank(rank, rank === 3 ? { destinations: {} } : {})),
    ),
  );
  requireRefusal(errors[3], { code: 'ERR_INVALID_ARGUMENT', says: ['destinations["t0"]', 'rank 3'] });
  for (const error of errors.slice(0, 3))
    requireRefusal(error, { code: 'ERR_RANK_LOST', peer: 3, says: ['not bound'] });
  await prepareAndRefit(session, world);
}

/** The ranks are as usable as before. */
async function prepareAndRefit(session: MoveSession, world: World): Promise<void> {
  await Promise.all(session.ranks.map((_, rank) => session.prepareRank(rank)));
  await requireRefit(session, streamsOf(world), 1);
}
