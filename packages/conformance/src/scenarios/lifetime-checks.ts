// SPDX-License-Identifier: Apache-2.0
// Objects end when they are told to, not before their work is done, and give back what they held.

import { type DeviceBuffer, NcclExtError } from '@nccl-ext/core';
import type { CheckCase } from '../cases/case.js';
import { streamsOf } from '../run/case-streams.js';
import {
  type CheckContext,
  errorOf,
  expectRefusal,
  injectsFaults,
  requireThat,
  requireWithin,
} from '../run/check-context.js';
import { growth, measureHeld } from '../run/memory.js';
import { check, contentOf, moveRanks, openCrossed, requireRefit, settleStreams } from './crossed-move.js';

const everywhere = { spread: true } as const;

export const lifetimeChecks: readonly CheckCase[] = [
  check('lifetime', 'transfers disposed with work in flight finish it', disposeInFlight, everywhere),
  check('lifetime', 'memory of a transfer cannot be freed under it', bufferInUse, everywhere),
  check('lifetime', 'a disposed transfer is refused', useAfterDispose, everywhere),
  check('lifetime', 'a world disposed while ranks wait ends', disposeWaitingWorld),
  check('lifetime', 'a wait that is pending when its world is disposed ends', pendingWaits),
  check('lifetime', 'one preparation serves a hundred refits at the same addresses', reuse, {
    reports: ['PaddlePaddle/FastDeploy#8079'],
    spread: true,
  }),
  check('lifetime', 'new memory for a restarted engine', restartedEngine, {
    reports: ['InternLM/xtuner#1993'],
    spread: true,
  }),
  check(
    'lifetime',
    '40 rounds of prepare, refit and dispose hold nothing',
    (context) => rounds(context, 20, 40),
    {
      reports: ['NVIDIA-NeMo/RL#3166', 'InternLM/xtuner#1306'],
      spread: true,
    },
  ),
];

async function disposeInFlight(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  const refit = session.enqueueRefit(streams, contentOf(1));
  await Promise.all(session.ranks.map((_, rank) => session.transferOf(rank).dispose()));
  await Promise.all(streams.map((stream) => stream.synchronize()));
  const difference = refit.difference();
  requireThat(difference === undefined, `${difference}`);
}

async function bufferInUse(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = await openCrossed(world);
  const buffers: readonly DeviceBuffer[] = session.ranks.flatMap(({ source, destination }) =>
    [source.buffer, destination.buffer].filter((buffer) => buffer !== undefined),
  );
  for (const buffer of buffers) await expectRefusal(() => buffer.dispose(), { code: 'ERR_BUSY' });
  await requireRefit(session, streamsOf(world), 1);
  await Promise.all(session.ranks.map((_, rank) => session.transferOf(rank).dispose()));
  for (const buffer of buffers) await buffer.dispose();
}

async function useAfterDispose(context: CheckContext): Promise<void> {
  const world = await context.shared(moveRanks);
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  await session.dispose();
  for (const [place, stream] of streams.entries()) {
    await expectRefusal(() => session.enqueueMove(place, stream), { code: 'ERR_DISPOSED' });
    await expectRefusal(() => session.transferOf(place).progress, { code: 'ERR_DISPOSED' });
  }
}

/** Rank 3 never enqueues, so the others wait when the world ends. */
async function disposeWaitingWorld(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks, timeoutMs: 500 });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  for (const rank of [0, 1, 2]) session.enqueueMove(rank, streams[rank]!);
  const waits = settleStreams(streams.slice(0, 3));
  const began = performance.now();
  await errorOf(context.end(world));
  const ms = performance.now() - began;
  requireThat(ms < 15_000, `the world took ${Math.round(ms)} ms to end`);
  const errors = await waits;
  requireThat(
    errors.some((error) => NcclExtError.is(error)),
    'every rank reports success, yet rank 3 never came',
  );
}

/** Rank 0 stands still, by injection or behind a barrier that nobody joins, so its wait is pending when the world ends. */
async function pendingWaits(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks, timeoutMs: 300 });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  if (injectsFaults(world)) world.faults.stop(0);
  else streams[0]!.barrier();
  session.enqueueAll(streams);
  const waits = settleStreams(streams);
  await settleStreams(streams.slice(1));
  await context.end(world);
  await requireWithin(
    5000,
    waits.then(() => {}),
    'a wait is still pending 5 s after its world was disposed',
  );
}

async function reuse(context: CheckContext): Promise<void> {
  const world = await context.shared(moveRanks);
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  const addresses = (): string =>
    session.ranks
      .map(({ source, destination }) => `${source.buffer?.address}/${destination.buffer?.address}`)
      .join();
  const before = addresses();
  for (let number = 0; number < 100; number++) await requireRefit(session, streams, number);
  requireThat(addresses() === before, 'an address changed');
  session.ranks.forEach((_, rank) => {
    const { completed, writtenBytes, bytesPerExecution } = session.transferOf(rank).progress;
    requireThat(
      completed === 100 && writtenBytes === 100 * bytesPerExecution,
      `rank ${rank} reports ${completed} executions of 100 and ${writtenBytes} bytes of 100 x ${bytesPerExecution}`,
    );
  });
  await session.dispose();
}

/** The same plan and sources, other destination buffers. */
async function restartedEngine(context: CheckContext): Promise<void> {
  const world = await context.shared(moveRanks);
  const first = await openCrossed(world);
  const streams = streamsOf(world);
  await requireRefit(first, streams, 1);
  await first.dispose();
  const second = await openCrossed(world);
  requireThat(second.plan === first.plan, 'an equal request was planned again');
  await requireRefit(second, streams, 2);
  await second.dispose();
}

/** Between round `warm` and the last one nothing may grow. */
export async function rounds(context: CheckContext, warm: number, total: number): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  let before: Awaited<ReturnType<typeof measureHeld>> | undefined;
  for (let round = 1; round <= total; round++) {
    const session = await openCrossed(world, round % 2 === 1);
    const streams = streamsOf(world);
    await requireRefit(session, streams, round);
    await Promise.all(streams.map((stream) => stream.dispose()));
    await session.dispose();
    if (round === warm) before = await measureHeld(world);
  }
  const grown = growth(before!, await measureHeld(world));
  requireThat(grown === undefined, `from round ${warm} to ${total} ${grown}`);
}
