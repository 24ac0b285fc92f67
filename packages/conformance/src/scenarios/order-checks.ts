// SPDX-License-Identifier: Apache-2.0
// What streams promise: nothing is read or written early, and independent work stays independent.

import { type Stream, shard } from '@nccl-ext/core';
import type { CheckCase, TensorSpec } from '../cases/case.js';
import { line } from '../cases/side.js';
import { streamsOf } from '../run/case-streams.js';
import { type CaseWorld, ownPlaces } from '../run/case-world.js';
import { type CheckContext, expectRefusal, requireThat } from '../run/check-context.js';
import { MoveSession } from '../run/move-session.js';
import { PartWorld } from '../run/part-world.js';
import { Skipped } from '../run/skipped.js';
import {
  check,
  contentOf,
  crossed,
  moveRanks,
  openCrossed,
  pause,
  requireRefit,
  requireUntouched,
} from './crossed-move.js';

/** Long enough for a wrong write to happen. */
const pauseMs = 50;

const everywhere = { spread: true } as const;

export const orderChecks: readonly CheckCase[] = [
  check('streams', 'a destination that is still being read', destinationBusy, everywhere),
  check('streams', 'a source that is still being written', sourceBusy, everywhere),
  check('streams', 'one transfer on two streams at once', twoStreams, everywhere),
  check('streams', 'two transfers in opposite order on different ranks', oppositeOrder, {
    reports: ['huggingface/trl#7103'],
    spread: true,
  }),
  check('streams', 'two worlds at once', twoWorlds, {
    reports: ['vllm-project/vllm#5477'],
    spread: true,
  }),
  check('streams', 'transfers in flight on streams of two worlds and of a split one', manyInFlight, {
    reports: ['vllm-project/vllm#5477'],
    spread: true,
  }),
  check('streams', 'a full queue refuses one more and keeps what it has', fullQueue, everywhere),
];

/** Rank 2 reads its old weights behind a barrier; the sources are ready long before. */
async function destinationBusy(context: CheckContext): Promise<void> {
  const world = await context.shared(moveRanks);
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  await requireRefit(session, streams, 1);
  const { guard } = contentOf(2);
  const copies = ownPlaces(world, [2]).map((place) => {
    const { buffer, image } = session.ranks[place]!.destination;
    const copy = world.ranks[place]!.allocate(image.bytes);
    streams[place]!.fill(buffer!, guard);
    streams[place]!.barrier();
    streams[place]!.copy({ buffer: copy }, { buffer: buffer! }, image.bytes);
    return { copy, seen: new Uint8Array(image.bytes), stream: streams[place]! };
  });
  // The refit poisons destinations first; here the copy before it must still see the old bytes.
  const refit = session.enqueueRefit(streams, contentOf(3));
  await pause(pauseMs);
  const gate = streamsOf(world);
  for (const place of ownPlaces(world, [0, 1, 3])) gate[place]!.barrier();
  for (const { copy, seen, stream } of copies) stream.download(seen, copy);
  await Promise.all([...streams, ...gate].map((stream) => stream.synchronize()));
  for (const { seen } of copies) requireUntouched(seen, guard, 'the destination that was being read');
  const difference = refit.difference();
  requireThat(difference === undefined, `after the read: ${difference}`);
  await session.dispose();
  for (const { copy } of copies) await copy.dispose();
}

/** Rank 0 gets its weights behind a barrier; everybody else waits for them. */
async function sourceBusy(context: CheckContext): Promise<void> {
  const world = await context.shared(moveRanks);
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  await requireRefit(session, streams, 1);
  for (const place of ownPlaces(world, [0])) streams[place]!.barrier();
  const refit = session.enqueueRefit(streams, contentOf(2));
  await pause(pauseMs);
  const gate = streamsOf(world);
  for (const place of ownPlaces(world, [1, 2, 3])) gate[place]!.barrier();
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
    for (const streams of [first, second]) session.enqueueAll(streams);
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
  requireWriting(world, 'NCCL takes what ranks send in the same order on all of them');
  const down: TensorSpec = { ...crossed, source: line(2, shard(0), 2), destination: line(2, shard(1)) };
  const sessions = [await openCrossed(world), await MoveSession.open(world, { tensors: [down] })];
  const streams = [streamsOf(world), streamsOf(world)];
  const refits = sessions.map((session, s) => session.enqueueRefit(streams[s]!, contentOf(5 + s), () => {}));
  await Promise.all(streams.flat().map((stream) => stream.synchronize()));
  // Every rank is a destination of one of the two.
  requireThat(
    world.ranks.length === 0 || refits.some((refit) => refit.difference() !== undefined),
    'nothing was enqueued, yet data arrived',
  );
  for (let round = 0; round < 5; round++) {
    world.ranks.forEach(({ rank }, place) => {
      const order = rank < 2 ? [0, 1] : [1, 0];
      for (const s of order) sessions[s]!.enqueueMove(place, streams[s]![place]!);
    });
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

/** Everything is enqueued before anything is awaited, on two streams of each communicator, up in one and down in the other. */
async function manyInFlight(context: CheckContext): Promise<void> {
  const first = await context.fresh({ ranks: moveRanks });
  const worlds = [first, await context.fresh({ ranks: moveRanks }), await splitOf(first)];
  const down: TensorSpec = { ...crossed, source: crossed.destination, destination: crossed.source };
  const lanes: { readonly session: MoveSession; readonly streams: readonly Stream[] }[] = [];
  for (const world of worlds) {
    for (const tensor of [crossed, down]) {
      const session = await MoveSession.open(world, { tensors: [tensor], verify: tensor === down });
      lanes.push({ session, streams: streamsOf(world) });
    }
  }
  const refits = Array.from({ length: 8 }, (_, number) =>
    lanes.map(({ session, streams }, lane) => session.enqueueRefit(streams, contentOf(100 * lane + number))),
  ).flat();
  await Promise.all(lanes.flatMap(({ streams }) => streams).map((stream) => stream.synchronize()));
  for (const [number, refit] of refits.entries()) {
    const difference = refit.difference();
    requireThat(difference === undefined, `refit ${number}: ${difference}`);
  }
}

/** A world of all ranks of another one, split off; it ends with it. */
async function splitOf(world: CaseWorld): Promise<CaseWorld> {
  const parts = await Promise.all(world.ranks.map((communicator) => communicator.split({ color: 0 })));
  return new PartWorld(
    world.size,
    world.backend,
    parts.filter((part) => part !== undefined),
  );
}

async function fullQueue(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  requireWriting(world, "executions that send fill CUDA's launch queue before the stream's own");
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  await requireRefit(session, streams, 1);
  // Rank 3 stands at a barrier, so nothing behind it can leave the queue.
  for (const place of ownPlaces(world, [3])) {
    const stream = streams[place]!;
    stream.barrier();
    for (let i = 0; i < 255; i++) session.enqueueMove(place, stream);
    await expectRefusal(() => session.enqueueMove(place, stream), { code: 'ERR_QUEUE_FULL' });
  }
  const gate = streamsOf(world);
  // The gate opens when rank 3 has filled its queue, in whatever process it is.
  await Promise.all(world.ranks.map((communicator) => communicator.agree('filled', { refits: 255 })));
  for (const place of ownPlaces(world, [0, 1, 2])) {
    gate[place]!.barrier();
    for (let i = 0; i < 255; i++) session.enqueueMove(place, streams[place]!);
  }
  await Promise.all([...streams, ...gate].map((stream) => stream.synchronize()));
  for (const place of ownPlaces(world, [3])) {
    const { completed } = session.transferOf(place).progress;
    requireThat(completed === 256, `rank 3 completed ${completed} executions; 1 and 255 were taken`);
  }
  await requireRefit(session, streams, 2);
}

/** For what holds only while ranks write into each other's memory. */
function requireWriting({ ranks }: CaseWorld, why: string): void {
  if (ranks[0]?.transferPath === 'sendrecv') throw new Skipped(why);
}
