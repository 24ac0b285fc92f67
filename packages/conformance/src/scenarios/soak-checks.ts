// SPDX-License-Identifier: Apache-2.0
// A thousand of everything: what one refit leaves behind shows after a thousand.

import type { CheckCase, TensorSpec } from '../cases/case.js';
import { streamsOf } from '../run/case-streams.js';
import type { CaseWorld } from '../run/case-world.js';
import { type CheckContext, requireThat } from '../run/check-context.js';
import { growth, measureHeld } from '../run/memory.js';
import { MoveSession } from '../run/move-session.js';
import { check, crossed, moveRanks, openCrossed, requireRefit } from './crossed-move.js';
import { rounds } from './lifetime-checks.js';

const reports = ['NVIDIA-NeMo/RL#3166'];

export const soakChecks: readonly CheckCase[] = [
  check('soak', 'a thousand refits', thousandRefits, { reports, spread: true }),
  check('soak', 'a thousand refits of two plans in turns', twoPlans, { reports, spread: true }),
  check('soak', 'a thousand replays of a captured refit', thousandReplays, { reports, spread: true }),
  check('soak', 'a thousand rounds of prepare, refit and dispose', (context) => rounds(context, 300, 1000), {
    reports,
    spread: true,
  }),
  check('soak', 'a hundred worlds', hundredWorlds),
];

/** A refit that slows down step by step would be far slower at the end; a busy machine is not three times slower for good. */
const slowdown = 3;

/** Worker threads have heaps that this thread cannot collect; each may fill its young generation of 16 MiB (twice) first. */
const workerHeapMebibytes = 64;

async function thousandRefits(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = await openCrossed(world, true);
  const streams = streamsOf(world);
  await requireSteady(world, (number) => requireRefit(session, streams, number));
}

/** Everything moves back in every second refit, over another plan with memory of its own. */
async function twoPlans(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const back: TensorSpec = { ...crossed, source: crossed.destination, destination: crossed.source };
  const sessions = [await openCrossed(world), await MoveSession.open(world, { tensors: [back] })];
  const streams = streamsOf(world);
  await requireSteady(world, (number) => requireRefit(sessions[number % 2]!, streams, number));
}

async function thousandReplays(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const session = await openCrossed(world);
  const streams = streamsOf(world);
  const graphs = session.capture(streams);
  await requireSteady(world, (number) =>
    requireRefit(session, streams, number, (place, stream) => stream.launch(graphs[place]!)),
  );
}

/** A thousand times the same: from the 300th on nothing may grow, and the last must be as quick as the first. */
async function requireSteady(world: CaseWorld, refit: (number: number) => Promise<void>): Promise<void> {
  const times: number[] = [];
  let before: Awaited<ReturnType<typeof measureHeld>> | undefined;
  for (let number = 1; number <= 1000; number++) {
    const began = performance.now();
    await refit(number);
    times.push(performance.now() - began);
    if (number === 300) before = await measureHeld(world);
  }
  const grown = growth(before!, await measureHeld(world), workerHeapMebibytes);
  requireThat(grown === undefined, `from refit 300 to 1000 ${grown}`);
  const [early, latest] = [median(times.slice(200, 400)), median(times.slice(800))];
  requireThat(
    latest < slowdown * early,
    `a refit took ${early.toFixed(2)} ms around the 300th and ${latest.toFixed(2)} ms around the 900th`,
  );
}

async function hundredWorlds(context: CheckContext): Promise<void> {
  for (let number = 1; number <= 100; number++) {
    const world = await context.fresh({ ranks: moveRanks });
    await requireRefit(await openCrossed(world), streamsOf(world), number);
    await context.end(world);
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
