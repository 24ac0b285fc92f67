// SPDX-License-Identifier: Apache-2.0
// Ranks that are missing, late or gone: the others learn who it is, in time, and the process goes on in another world.

import type { CheckCase, TensorSpec } from '../cases/case.js';
import { streamsOf } from '../run/case-streams.js';
import { type CaseWorld, ownPlaces } from '../run/case-world.js';
import {
  type CheckContext,
  errorOf,
  expectRefusal,
  injectsFaults,
  requireRefusal,
  requireThat,
} from '../run/check-context.js';
import { MoveSession } from '../run/move-session.js';
import {
  check,
  contentOf,
  crossed,
  destinationRanks,
  moveRanks,
  openCrossed,
  pause,
  readDestination,
  requireRefit,
  requireUntouched,
  settleStreams,
  sourceRanks,
} from './crossed-move.js';

/** Deadline in worlds where a rank is missing. */
const timeoutMs = 300;

/** How long a late rank keeps the others waiting. */
const lateMs = 50;

export const lossChecks: readonly CheckCase[] = [
  check('faults', 'a rank that never prepares is named', neverPrepares, {
    reports: ['huggingface/trl#6913', 'NVIDIA-NeMo/RL#3720'],
    spread: true,
  }),
  check(
    'faults',
    'a source that never comes is named',
    (context) => neverComes(context, 0, destinationRanks),
    {
      reports: ['huggingface/trl#6913', 'huggingface/trl#2923'],
      spread: true,
    },
  ),
  check(
    'faults',
    'a destination that never comes is named',
    (context) => neverComes(context, 2, sourceRanks),
    {
      reports: ['huggingface/trl#6913'],
      spread: true,
    },
  ),
  check('faults', 'a rank that stops between two refits is named, and a new world mends', stops, {
    reports: ['huggingface/trl#6913'],
    spread: true,
  }),
  check('faults', 'a rank that is aborted in mid-transfer is named, and a new world mends', aborted, {
    reports: ['huggingface/trl#6913'],
    spread: true,
  }),
  check('faults', 'a rank that is late is waited for', late, { spread: true }),
  check('faults', 'a rank that is slow is waited for', slow),
  check('faults', 'a rank that leaves is named at once', leaves, { spread: true }),
];

async function neverPrepares(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks, timeoutMs });
  const session = new MoveSession(world, { tensors: [crossed] });
  const playing = context.without(world, 3);
  const calls = playing.map((place) => errorOf(session.prepareRank(place)));
  const waiting = playing.flatMap((place, call) => (world.ranks[place]!.rank === 3 ? [] : [calls[call]!]));
  for (const error of await Promise.all(waiting))
    requireRefusal(error, { code: 'ERR_TIMEOUT', peer: 3, says: ['rank 3'] });
  await context.meet();
}

async function neverComes(context: CheckContext, missing: number, waiting: readonly number[]): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks, timeoutMs });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  await requireRefit(session, streams, 1);
  const { guard } = contentOf(2);
  for (const place of ownPlaces(world, destinationRanks))
    streams[place]!.fill(session.ranks[place]!.destination.buffer!, guard);
  await Promise.all(streams.map((stream) => stream.synchronize()));

  const began = performance.now();
  for (const place of context.without(world, missing)) session.enqueueMove(place, streams[place]!);
  const left = ownPlaces(world, waiting);
  const errors = await settleStreams(left.map((place) => streams[place]!));
  for (const error of errors)
    requireRefusal(error, { code: 'ERR_TIMEOUT', peer: missing, says: [`rank ${missing}`] });
  requireInTime(world, began);
  await context.meet();
  for (const place of left) {
    await expectRefusal(
      async () => {
        session.enqueueMove(place, streams[place]!);
        await streams[place]!.synchronize();
      },
      { code: 'ERR_POISONED' },
    );
  }
  if (missing !== 2) return;

  // Its stream never came to the operation, so nobody may have written there.
  for (const place of ownPlaces(world, [2])) {
    const bytes = injectsFaults(world)
      ? session.ranks[place]!.destination.buffer!.view('u8')
      : await readDestination(session, place, streams[place]!);
    requireUntouched(bytes, guard, 'the destination of the rank that never came');
  }
}

/** Refits follow one another without waiting; rank 1 has no part in the last ones. The same processes go on in another world. */
async function stops(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks, timeoutMs });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  await requireRefit(session, streams, 1);
  const began = performance.now();
  for (let refit = 0; refit < 3; refit++) session.enqueueAll(streams);
  for (const place of context.without(world, 1)) {
    for (let refit = 0; refit < 3; refit++) session.enqueueMove(place, streams[place]!);
  }
  const destinations = ownPlaces(world, destinationRanks);
  for (const error of await settleStreams(destinations.map((place) => streams[place]!)))
    requireRefusal(error, { code: 'ERR_TIMEOUT', peer: 1, says: ['rank 1'] });
  requireInTime(world, began);
  await context.meet();
  for (const place of destinations) {
    requireThat(world.ranks[place]!.failure !== undefined, 'a rank that lost another calls itself usable');
  }
  await context.end(world);

  const next = await context.fresh({ ranks: moveRanks });
  await requireRefit(await openCrossed(next, true), streamsOf(next), 2);
}

/**
 * Many transfers of a tensor that takes a while are on their way, and the others have two more than rank 1: the destinations wait for it,
 * and rank 0 for the destinations.
 */
async function aborted(context: CheckContext): Promise<void> {
  const large: TensorSpec = { ...crossed, shape: [1024, 1024] };
  const world = await context.fresh({ ranks: moveRanks, timeoutMs: 20_000 });
  const session = await MoveSession.open(world, { tensors: [large] });
  const streams = streamsOf(world);
  await requireRefit(session, streams, 1);
  const began = performance.now();
  for (let refit = 0; refit < 100; refit++) session.enqueueAll(streams);
  const left = ownPlaces(world, [0, 2, 3]);
  for (let refit = 0; refit < 2; refit++)
    for (const place of left) session.enqueueMove(place, streams[place]!);
  const waits = settleStreams(streams);
  // Before others have enqueued theirs, an abort would be refused to them by the call.
  await context.meet();
  for (const place of ownPlaces(world, [1])) world.ranks[place]!.abort('the trainer restarts');
  const errors = await waits;
  for (const place of left) requireRefusal(errors[place], { code: 'ERR_RANK_LOST', peer: 1 });
  const ms = performance.now() - began;
  requireThat(ms < 10_000, `the errors came after ${Math.round(ms)} ms, as if by the deadline`);
  await context.meet();
  await context.end(world);

  const next = await context.fresh({ ranks: moveRanks });
  const mended = await MoveSession.open(next, { tensors: [large], verify: true });
  await requireRefit(mended, streamsOf(next), 2);
}

/** The deadline is the world's own: processes have longer ones. */
function requireInTime(world: CaseWorld, began: number): void {
  const ms = performance.now() - began;
  const deadline = world.ranks[0]?.timeoutMs ?? timeoutMs;
  requireThat(
    ms < 2 * deadline + 18 * timeoutMs,
    `the error came after ${Math.round(ms)} ms; the deadline is ${deadline} ms`,
  );
}

/** It enqueues when the others have waited for a while. */
async function late(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  for (const rank of [1, 2]) {
    const others = [0, 1, 2, 3].filter((other) => other !== rank);
    const early = session.enqueueRefit(streams, contentOf(rank), undefined, ownPlaces(world, others));
    await pause(lateMs);
    const last = session.enqueueRefit(streams, contentOf(rank), undefined, ownPlaces(world, [rank]));
    await Promise.all(streams.map((stream) => stream.synchronize()));
    const difference = early.difference() ?? last.difference();
    requireThat(difference === undefined, `rank ${rank} was late: ${difference}`);
  }
}

async function slow(context: CheckContext): Promise<void> {
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
  for (const place of ownPlaces(world, [1, 2, 3])) session.enqueueMove(place, streams[place]!);
  for (const place of ownPlaces(world, [0])) world.ranks[place]!.abort('trainer restarts');
  const waiting = ownPlaces(world, destinationRanks).map((place) => streams[place]!);
  for (const error of await settleStreams(waiting)) requireRefusal(error, { code: 'ERR_RANK_LOST', peer: 0 });
  const ms = performance.now() - began;
  requireThat(ms < 10_000, `the error came after ${Math.round(ms)} ms, as if by the deadline`);
  await context.meet();
}
