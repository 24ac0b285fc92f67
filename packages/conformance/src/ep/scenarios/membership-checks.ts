// SPDX-License-Identifier: Apache-2.0
// Ranks that drop out of a group with a mask, the steps of those that are left, and the way back.

import type { CheckCase } from '../../cases/case.js';
import {
  type CheckContext,
  errorOf,
  expectRefusal,
  requireRefusal,
  requireThat,
} from '../../run/check-context.js';
import { check } from '../../scenarios/crossed-move.js';
import { everyLayout } from '../cases/base.js';
import type { HandleSpec } from '../cases/ep-case.js';
import type { EpSession } from '../run/ep-session.js';
import { checkEach, openSession, requireStep, settle } from './steps.js';

const timeoutMs = 400;
const survivors = [0, 1, 3];
const everybody = [0, 1, 2, 3];
const mask = { mask: true };

export const membershipChecks: readonly CheckCase[] = [
  ...checkEach('ep-membership', 'a lost rank is left out and comes back', leaveAndReturn, {
    reports: ['vllm-project/vllm#43637', 'flashinfer-ai/flashinfer#4183', 'vllm-project/vllm#47948'],
  }),
  check('ep-membership', 'seeing that a rank is missing changes nothing', observation, {
    reports: ['vllm-project/vllm#44428', 'sgl-project/sglang#22872'],
  }),
  check('ep-membership', 'replicas take over, experts without one are not routed', replicas),
  check('ep-membership', 'weights of what is left are divided by their sum', renormalized),
  check('ep-membership', 'what is in flight ends when members change', inFlight, {
    reports: ['uccl-project/uccl#993'],
  }),
  check('ep-membership', 'a member that does not come is named, and the group stays as it was', absentMember),
  check('ep-membership', 'lists that differ are refused', listsDiffer),
  check('ep-membership', 'a group without mask has fixed members', fixedMembers),
  check('ep-membership', 'ten changes in a row', manyChanges),
];

/** Rank 2 stands still in the middle of a step. */
async function lose(context: CheckContext, session: EpSession, epoch: number): Promise<void> {
  const step = session.openStep(epoch);
  await session.fill(step);
  context.faultsOf(session.world).stop(2);
  session.enqueue(step);
  for (const error of await settle(session, survivors))
    requireRefusal(error, { code: 'ERR_TIMEOUT', peer: 2 });
}

async function change(session: EpSession, active: readonly number[]): Promise<void> {
  await Promise.all(active.map((rank) => session.groups[rank]!.changeMembership(active)));
}

async function leaveAndReturn(context: CheckContext, handle: HandleSpec): Promise<void> {
  const session = await openSession(context, [handle], { timeoutMs, config: mask });
  await requireStep(session, 0);
  await lose(context, session, 1);
  await change(session, survivors);
  for (const epoch of [2, 3, 4]) await requireStep(session, epoch, { members: survivors });

  context.faultsOf(session.world).resume(2);
  // What rank 2 had enqueued before is of an epoch that has ended.
  requireRefusal((await settle(session, [2]))[0], { code: 'ERR_MEMBERSHIP' });
  await expectRefusal(
    async () => {
      session.enqueue(session.openStep(5), [2]);
      await session.streams[2]![0]!.synchronize();
    },
    { code: 'ERR_MEMBERSHIP' },
  );
  await change(session, everybody);
  for (const epoch of [6, 7]) await requireStep(session, epoch);
  for (const group of session.groups) {
    const { active } = group.membership;
    requireThat(
      active.length === 4 && group.observed().length === 0,
      `members are ${active} after all came back`,
    );
  }
}

async function observation(context: CheckContext): Promise<void> {
  const session = await openSession(context, [{ layout: 'flat' }], { timeoutMs, config: mask });
  const { epoch } = session.groups[0]!.membership;
  await lose(context, session, 0);
  for (const rank of survivors) {
    const group = session.groups[rank]!;
    requireThat(group.observed().join() === '2', `rank ${rank} observed ${group.observed()} missing, not 2`);
    const now = group.membership;
    requireThat(
      now.epoch === epoch && now.active.length === 4,
      `rank ${rank} changed its members to ${now.active} by itself`,
    );
    // Until the members change the group does nothing more.
    await expectRefusal(
      async () => {
        session.enqueue(session.openStep(1), [rank]);
        await session.streams[rank]![0]!.synchronize();
      },
      { code: 'ERR_MEMBERSHIP' },
    );
  }
}

async function replicas(context: CheckContext): Promise<void> {
  // Expert 2 is on rank 2 alone; 0 and 3 have replicas there.
  const placement = [
    [0, 1],
    [3, 4],
    [0, 2, 3],
    [4, 5],
  ];
  const session = await openSession(context, everyLayout, {
    timeoutMs,
    config: { ...mask, experts: { count: 6, placement }, topK: 3 },
  });
  await requireStep(session, 0);
  await lose(context, session, 1);
  await change(session, survivors);
  for (const epoch of [4, 5, 6, 7]) await requireStep(session, epoch, { members: survivors });
}

async function renormalized(context: CheckContext): Promise<void> {
  const session = await openSession(context, everyLayout, {
    timeoutMs,
    renormalize: true,
    config: { ...mask, dtype: 'f32', topK: 4 },
  });
  await lose(context, session, 0);
  await change(session, survivors);
  for (const epoch of [4, 5, 6, 7]) await requireStep(session, epoch, { members: survivors });
}

async function inFlight(context: CheckContext): Promise<void> {
  const session = await openSession(context, [{ layout: 'expert-major' }], {
    config: { mask: true, timeoutMs: 20_000 },
  });
  await requireStep(session, 0);
  const step = session.openStep(1);
  await session.fill(step);
  // Rank 2 never enqueues, so the others stand in their dispatch.
  session.enqueue(step, survivors);
  await change(session, survivors);
  for (const error of await settle(session, survivors)) requireRefusal(error, { code: 'ERR_MEMBERSHIP' });
  for (const epoch of [2, 3]) await requireStep(session, epoch, { members: survivors });
}

async function absentMember(context: CheckContext): Promise<void> {
  const session = await openSession(context, [{ layout: 'flat' }], { timeoutMs, config: mask });
  await requireStep(session, 0);
  const errors = await Promise.all(
    survivors.map((rank) => errorOf(session.groups[rank]!.changeMembership(everybody))),
  );
  for (const error of errors) requireRefusal(error, { code: 'ERR_TIMEOUT', peer: 2, says: ['rank 2'] });
  await requireStep(session, 1);
}

async function listsDiffer(context: CheckContext): Promise<void> {
  const session = await openSession(context, [{ layout: 'flat' }], { timeoutMs, config: mask });
  const errors = await Promise.all(
    everybody.map((rank) =>
      errorOf(session.groups[rank]!.changeMembership(rank === 3 ? [1, 2, 3] : everybody)),
    ),
  );
  requireThat(
    errors.every((error) => error !== undefined),
    `ranks passed different lists, yet some went through: ${errors.join('; ')}`,
  );
  await change(session, everybody);
  await requireStep(session, 0);
}

async function fixedMembers(context: CheckContext): Promise<void> {
  const session = await openSession(context, [{ layout: 'flat' }], { shared: true });
  await expectRefusal(() => session.groups[0]!.changeMembership([0, 1, 2]), {
    code: 'ERR_INVALID_STATE',
    says: ['mask'],
  });
  await session.dispose();
}

async function manyChanges(context: CheckContext): Promise<void> {
  const session = await openSession(context, everyLayout, { config: { mask: true } });
  for (let round = 0; round < 10; round++) {
    const members = round % 2 === 0 ? everybody.filter((rank) => rank !== (round / 2) % 4) : everybody;
    await change(session, members);
    // An odd number of operations, so that nothing can rely on parity.
    for (let epoch = 0; epoch <= round % 3; epoch++)
      await requireStep(session, 8 * round + epoch, { members });
  }
}
