// SPDX-License-Identifier: Apache-2.0
// What streams promise: nothing is read or written early, and independent work stays independent.

import { shard } from '@nccl-ext/core';
import type { CheckCase, TensorSpec } from '../cases/case.js';
import { line } from '../cases/side.js';
import { streamsOf } from '../run/case-streams.js';
import { type CheckContext, expectRefusal, requireThat } from '../run/check-context.js';
import { MoveSession } from '../run/move-session.js';
import {
  check,
  contentOf,
  crossed,
  moveRanks,
  openCrossed,
  requireRefit,
  requireUntouched,
} from './crossed-move.js';

/** Long enough for a wrong write to happen. */
const pauseMs = 50;

export const orderChecks: readonly CheckCase[] = [
  check('streams', 'a destination that is still being read', destinationBusy),
  check('streams', 'a source that is still being written', sourceBusy),
  check('streams', 'one transfer on two streams at once', twoStreams),
  check('streams', 'two transfers in opposite order on different ranks', oppositeOrder, {
    reports: ['huggingface/trl#7103'],
  }),
  check('streams', 'two worlds at once', twoWorlds, { reports: ['vllm-project/vllm#5477'] }),
  check('streams', 'a full queue refuses one more and keeps what it has', fullQueue),
];

/** Rank 2 reads its old weights behind a barrier; the sources are ready long before. */
async function destinationBusy(context: CheckContext): Promise<void> {
  const world = await context.shared(moveRanks);
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  await requireRefit(session, streams, 1);
  const { buffer, image } = session.ranks[2]!.destination;
  const { guard } = contentOf(2);
  const copy = world.ranks[2]!.allocate(image.bytes);
  const seen = new Uint8Array(image.bytes);
  streams[2]!.fill(buffer!, guard);
  streams[2]!.barrier();
  streams[2]!.copy({ buffer: copy }, { buffer: buffer! }, image.bytes);
  const refit = session.enqueueRefit(streams, contentOf(3), (rank, stream) => {
    // The refit poisons destinations first; here the copy before it must still see the old bytes.
    session.enqueueMove(rank, stream);
  });
  await pause();
  const gate = streamsOf(world);
  for (const rank of [0, 1, 3]) gate[rank]!.barrier();
  streams[2]!.download(seen, copy);
  await Promise.all([...streams, ...gate].map((stream) => stream.synchronize()));
  requireUntouched(seen, guard, 'the destination that was being read');
  const difference = refit.difference();
  requireThat(difference === undefined, `after the read: ${difference}`);
  await session.dispose();
  await copy.dispose();
}

/** Rank 0 gets its weights behind a barrier; everybody else waits for them. */
async function sourceBusy(context: CheckContext): Promise<void> {
  const world = await context.shared(moveRanks);
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  await requireRefit(session, streams, 1);
  streams[0]!.barrier();
  const refit = session.enqueueRefit(streams, contentOf(2));
  await pause();
  const gate = streamsOf(world);
  for (const rank of [1, 2, 3]) gate[rank]!.barrier();
  await Promise.all([...streams, ...gate].map((stream) => stream.synchronize()));
  const difference = refit.difference();
  requireThat(difference === undefined, `${difference}`);
  await session.dispose();
}

async function twoStreams(context: CheckContext): Promise<void> {
  const world = await context.shared(moveRanks);
  const session = await openCrossed(world);
  const [first, second] = [streamsOf(world), streamsOf(world)];
  await requireRefit(session, first, 1);
  const before = session.ranks.map((_, rank) => session.transferOf(rank).progress.completed);
  for (let round = 0; round < 10; round++) {
    for (const streams of [first, second]) {
      streams.forEach((stream, rank) => {
        session.enqueueMove(rank, stream);
      });
    }
  }
  await Promise.all([...first, ...second].map((stream) => stream.synchronize()));
  session.ranks.forEach((_, rank) => {
    const done = session.transferOf(rank).progress.completed - before[rank]!;
    requireThat(done === 20, `rank ${rank} completed ${done} executions of 20`);
  });
  await requireRefit(session, second, 2);
  await session.dispose();
}

/** Ranks 0 and 1 start with A, ranks 2 and 3 with B, each on a stream of its own; A goes up and B comes down. */
async function oppositeOrder(context: CheckContext): Promise<void> {
  const world = await context.shared(moveRanks);
  const down: TensorSpec = { ...crossed, source: line(2, shard(0), 2), destination: line(2, shard(1)) };
  const sessions = [await openCrossed(world), await MoveSession.open(world, { tensors: [down] })];
  const streams = [streamsOf(world), streamsOf(world)];
  const refits = sessions.map((session, s) => session.enqueueRefit(streams[s]!, contentOf(5 + s), () => {}));
  await Promise.all(streams.flat().map((stream) => stream.synchronize()));
  requireThat(
    refits.every((refit) => refit.difference() !== undefined),
    'nothing was enqueued, yet data arrived',
  );
  for (let round = 0; round < 5; round++) {
    for (const rank of [0, 1, 2, 3]) {
      const order = rank < 2 ? [0, 1] : [1, 0];
      for (const s of order) sessions[s]!.enqueueMove(rank, streams[s]![rank]!);
    }
  }
  await Promise.all(streams.flat().map((stream) => stream.synchronize()));
  for (const [s, session] of sessions.entries()) await requireRefit(session, streams[s]!, 10 + s);
  for (const session of sessions) await session.dispose();
}

async function twoWorlds(context: CheckContext): Promise<void> {
  const worlds = await Promise.all([0, 1].map(() => context.fresh({ ranks: moveRanks })));
  await Promise.all(
    worlds.map(async (world, w) => {
      const session = await openCrossed(world, w === 1);
      const streams = streamsOf(world);
      for (let number = 0; number < 20; number++) await requireRefit(session, streams, 100 * w + number);
    }),
  );
}

async function fullQueue(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  await requireRefit(session, streams, 1);
  // Rank 3 stands at a barrier, so nothing behind it can leave the queue.
  streams[3]!.barrier();
  for (let i = 0; i < 255; i++) session.enqueueMove(3, streams[3]!);
  await expectRefusal(() => session.enqueueMove(3, streams[3]!), { code: 'ERR_QUEUE_FULL' });
  const gate = streamsOf(world);
  for (const rank of [0, 1, 2]) {
    gate[rank]!.barrier();
    for (let i = 0; i < 255; i++) session.enqueueMove(rank, streams[rank]!);
  }
  await Promise.all([...streams, ...gate].map((stream) => stream.synchronize()));
  const { completed } = session.transferOf(3).progress;
  requireThat(completed === 256, `rank 3 completed ${completed} executions; 1 and 255 were taken`);
  await requireRefit(session, streams, 2);
}

function pause(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, pauseMs);
  });
}
