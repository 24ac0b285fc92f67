// SPDX-License-Identifier: Apache-2.0
// Ranks that are missing, late or gone in the middle of a step: the others learn who it is, in time.

import type { CheckCase } from '../../cases/case.js';
import { type CheckContext, expectRefusal, requireRefusal, requireThat } from '../../run/check-context.js';
import { check } from '../../scenarios/crossed-move.js';
import { everyLayout } from '../cases/base.js';
import type { HandleSpec } from '../cases/ep-case.js';
import { enqueueDispatch, enqueueRoute } from '../run/enqueue-step.js';
import { checkEach, openSession, requireStep, settle } from './steps.js';

const timeoutMs = 400;

export const epFaultChecks: readonly CheckCase[] = [
  ...checkEach('ep-faults', 'a rank that never comes is named', neverComes, {
    reports: ['vllm-project/vllm#46509', 'SemiAnalysisAI/InferenceX#2331'],
  }),
  ...checkEach('ep-faults', 'a rank that does not combine is named', noCombine),
  check('ep-faults', 'a rank that is late in every operation is waited for', late, {
    reports: [
      'SemiAnalysisAI/InferenceX#2331',
      'SemiAnalysisAI/InferenceX#2407',
      'SemiAnalysisAI/InferenceX#2815',
    ],
  }),
  check('ep-faults', 'a rank that leaves is named at once', leaves),
  check('ep-faults', 'another group goes on when one has lost a rank', otherGroup),
  check('ep-faults', 'the process goes on after a timeout, in a new world', newWorld, {
    reports: ['vllm-project/vllm#46509', 'NVIDIA-NeMo/Megatron-Bridge#1335'],
  }),
];

async function neverComes(context: CheckContext, handle: HandleSpec): Promise<void> {
  const session = await openSession(context, [handle], { timeoutMs });
  await requireStep(session, 0);
  const step = session.openStep(1);
  await session.fill(step);
  context.faultsOf(session.world).stop(2);
  const began = performance.now();
  session.enqueue(step);
  for (const error of await settle(session, [0, 1, 3]))
    requireRefusal(error, { code: 'ERR_TIMEOUT', peer: 2, says: ['rank 2'] });
  const ms = performance.now() - began;
  requireThat(
    ms < 20 * timeoutMs,
    `the error came after ${Math.round(ms)} ms; the deadline is ${timeoutMs} ms`,
  );
  await expectRefusal(
    async () => {
      session.enqueue(step, [0]);
      await session.streams[0]![0]!.synchronize();
    },
    { code: 'ERR_POISONED' },
  );
}

async function noCombine(context: CheckContext, handle: HandleSpec): Promise<void> {
  const session = await openSession(context, [handle], { timeoutMs });
  const step = session.openStep(0);
  await session.fill(step);
  session.enqueue(step, [0, 2, 3]);
  enqueueRoute(session.epCase.config, session.target(step, 1));
  enqueueDispatch(session.epCase, session.target(step, 1));
  for (const error of await settle(session, [0, 2, 3]))
    requireRefusal(error, { code: 'ERR_TIMEOUT', peer: 1, says: ['rank 1', 'combine'] });
}

async function late(context: CheckContext): Promise<void> {
  const session = await openSession(context, everyLayout);
  const faults = context.faultsOf(session.world);
  for (const epoch of [0, 1, 2, 3]) {
    faults.delay(epoch, 8);
    await requireStep(session, epoch);
    faults.delay(epoch, 0);
  }
}

async function leaves(context: CheckContext): Promise<void> {
  const session = await openSession(context, [{ layout: 'flat' }], { timeoutMs: 20_000 });
  const step = session.openStep(0);
  await session.fill(step);
  const began = performance.now();
  session.enqueue(step, [1, 2, 3]);
  session.world.ranks[0]!.abort('engine restarts');
  for (const error of await settle(session, [1, 2, 3]))
    requireRefusal(error, { code: 'ERR_RANK_LOST', peer: 0 });
  const ms = performance.now() - began;
  requireThat(ms < 10_000, `the error came after ${Math.round(ms)} ms, as if by the deadline`);
}

async function otherGroup(context: CheckContext): Promise<void> {
  const [broken, whole] = [
    await openSession(context, [{ layout: 'packed', alignment: 4 }], { timeoutMs }),
    await openSession(context, everyLayout, { shared: true }),
  ];
  const step = broken.openStep(0);
  await broken.fill(step);
  broken.enqueue(step, [0, 1, 2]);
  const waiting = settle(broken, [0, 1, 2]);
  for (const epoch of [0, 1, 2, 3]) await requireStep(whole, epoch);
  for (const error of await waiting) requireRefusal(error, { code: 'ERR_TIMEOUT', peer: 3 });
  await requireStep(whole, 4);
  await whole.dispose();
}

async function newWorld(context: CheckContext): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const session = await openSession(context, [everyLayout[round]!], { timeoutMs: 100 });
    const step = session.openStep(0);
    await session.fill(step);
    session.enqueue(step, [1, 2, 3]);
    await settle(session, [1, 2, 3]);
    await context.end(session.world);
  }
  await requireStep(await openSession(context, everyLayout), 0);
}
