// SPDX-License-Identifier: Apache-2.0
// Thousands of steps: what goes wrong once in a while, or grows a little each time.

import type { CheckCase } from '../../cases/case.js';
import { type CheckContext, requireThat } from '../../run/check-context.js';
import { growth, measureHeld } from '../../run/memory.js';
import { check } from '../../scenarios/crossed-move.js';
import { everyLayout, lowLatency } from '../cases/base.js';
import type { HandleSpec } from '../cases/ep-case.js';
import { wordsOf } from '../run/step-data.js';
import { rounds } from './lifetime-checks.js';
import { openSession, requireRight, requireStep } from './steps.js';

export const epSoakChecks: readonly CheckCase[] = [
  check(
    'soak',
    'ten thousand steps of twelve handles of low latency in random order',
    (context) =>
      randomOrder(
        context,
        Array.from({ length: 12 }, (_, i) => lowLatency[i % 2]!),
        10_000,
      ),
    { reports: ['NVIDIA/nccl#2303'] },
  ),
  check('soak', 'ten thousand steps of handles of all layouts in random order', (context) =>
    randomOrder(context, [...everyLayout, ...everyLayout, ...everyLayout], 10_000),
  ),
  check('soak', 'a thousand steps, each with another routing', otherRoutings),
  check('soak', 'a thousand rounds of create, step and dispose of EP groups', (context) =>
    rounds(context, 300, 1000),
  ),
  check('soak', 'two hundred changes of membership', manyChanges),
];

const perWait = 20;

/** A random handle each time, several in flight; memory is that of the handle, compared every 20 steps. */
async function randomOrder(
  context: CheckContext,
  handles: readonly HandleSpec[],
  total: number,
): Promise<void> {
  const session = await openSession(context, handles, { routings: [{ ids: 'uniform', holes: 10 }] });
  const steps = handles.map((_, handleIndex) => session.openStep(handleIndex, { handleIndex }));
  for (const step of steps) await session.fill(step);
  const { low } = wordsOf('ids', 1);
  const before = await measureHeld(session.world);
  for (let done = 0; done < total; done += perWait) {
    for (let i = 0; i < perWait; i++) session.enqueue(steps[low(done + i) % steps.length]!);
    await session.synchronize();
    const used = steps[low(done) % steps.length]!;
    await requireRight(session, used);
    await session.fill(used);
  }
  const grown = growth(before, await measureHeld(session.world), 96);
  requireThat(grown === undefined, `in ${total} steps ${grown}`);
}

async function otherRoutings(context: CheckContext): Promise<void> {
  const session = await openSession(context, everyLayout, {
    routings: [
      { ids: 'uniform', holes: 10, tokens: 'ragged' },
      { ids: 'hot', tokens: 'ragged' },
      { ids: 'one-rank', tokens: 'ragged' },
    ],
  });
  for (let epoch = 0; epoch < 1000; epoch++) await requireStep(session, epoch);
}

async function manyChanges(context: CheckContext): Promise<void> {
  const session = await openSession(context, everyLayout, { config: { mask: true } });
  const { low } = wordsOf('tokenCounts', 2);
  for (let round = 0; round < 200; round++) {
    const members = session.allRanks.filter(
      (rank) => ((low(round) >>> rank) & 1) === 1 || rank === round % 4,
    );
    await Promise.all(members.map((rank) => session.groups[rank]!.changeMembership(members)));
    for (let epoch = 0; epoch <= round % 3; epoch++)
      await requireStep(session, 4 * round + epoch, { members });
  }
}
