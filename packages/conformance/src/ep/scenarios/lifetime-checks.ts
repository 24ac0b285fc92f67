// SPDX-License-Identifier: Apache-2.0
// Memory of groups and handles: as much as was said, nothing per step, all of it back in the end.

import { type DeviceBuffer, NcclExtError } from '@nccl-ext/core';
import { backendOf } from '@nccl-ext/core/extend';
import { createEpGroup, epMemory, layoutOf } from '@nccl-ext/ep';
import type { CheckCase } from '../../cases/case.js';
import { type CheckContext, expectRefusal, requireThat } from '../../run/check-context.js';
import { growth, measureHeld } from '../../run/memory.js';
import { check } from '../../scenarios/crossed-move.js';
import { epCase, everyLayout, smallConfig } from '../cases/base.js';
import type { EpCase } from '../cases/ep-case.js';
import { enqueueRoute, loose, sendDispatch } from '../run/enqueue-step.js';
import { EpSession } from '../run/ep-session.js';
import { checkRanks, openSession, requireRight, requireStep } from './steps.js';

export const epLifetimeChecks: readonly CheckCase[] = [
  check('ep-lifetime', 'a hundred steps allocate nothing', steadyState, { reports: ['NVIDIA/nccl#2084'] }),
  check('ep-lifetime', 'groups and handles take what epMemory says', announced, {
    reports: ['NVIDIA/nccl#2038', 'marin-community/marin#7331'],
  }),
  check('ep-lifetime', 'memory of the caller is used and nothing beside it', callersMemory, {
    reports: ['NVIDIA/nccl#2038'],
  }),
  check('ep-lifetime', 'memory of the caller that is too small is refused', tooSmall),
  check('ep-lifetime', 'a handle with work in flight is busy until it is done', disposeInFlight),
  check('ep-lifetime', 'a handle that a graph uses is busy', busyHandle),
  check('ep-lifetime', 'a disposed handle and a disposed group are refused', useAfterDispose),
  check('ep-lifetime', 'a world ends while a send is open', openSend),
  check('ep-lifetime', 'two groups on one communicator', twoGroups),
  check('ep-lifetime', '30 rounds of create, step and dispose hold nothing', (context) =>
    rounds(context, 15, 30),
  ),
];

async function steadyState(context: CheckContext): Promise<void> {
  const session = await openSession(context, everyLayout, { routings: [{ ids: 'uniform' }] });
  const steps = everyLayout.map((_, index) => session.openStep(index));
  for (const step of steps) await session.fill(step);
  const before = await measureHeld(session.world);
  for (let round = 0; round < 25; round++) {
    for (const step of steps) session.enqueue(step);
    await session.synchronize();
    const { allocatedBytes } = backendOf(session.world.ranks[0]!).runtime.memoryUsage();
    requireThat(allocatedBytes === before.allocatedBytes, `round ${round} allocated device memory`);
  }
  for (const step of steps) await requireRight(session, step);
}

async function announced(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: checkRanks });
  const { group, handle } = epMemory(smallConfig, checkRanks);
  const layout = layoutOf(smallConfig, checkRanks);
  requireThat(
    group.bytes === layout.group.bytes && handle.bytes === layout.handle.bytes,
    'epMemory and layoutOf differ',
  );
  const before = await measureHeld(world);
  const groups = await Promise.all(
    world.ranks.map((communicator) => createEpGroup(communicator, smallConfig)),
  );
  const handles = groups.flatMap((one) =>
    everyLayout.map((spec) => one.createHandle(spec as { layout: 'packed' })),
  );
  const after = await measureHeld(world);
  const wanted = checkRanks * group.bytes + handles.length * handle.bytes;
  const seen = after.allocatedBytes - before.allocatedBytes;
  // The backend rounds each block up to its alignment, which sizes are multiples of.
  requireThat(seen === wanted, `${seen} bytes were allocated; epMemory says ${wanted}`);
  for (const one of groups)
    requireThat(one.memory().total === wanted / checkRanks, 'group.memory() says something else');
  await Promise.all(groups.map((one) => one.dispose()));
  const end = await measureHeld(world);
  requireThat(end.allocatedBytes === before.allocatedBytes, 'disposing a group gives back less than it took');
}

/** A step of each layout. */
function caseOf(): EpCase {
  return epCase('ep-lifetime', 'check');
}

const guardBytes = 4096;

async function callersMemory(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: checkRanks });
  const { group, handle } = layoutOf(smallConfig, checkRanks);
  const owned: { readonly buffer: DeviceBuffer; readonly bytes: number }[] = [];
  const session = await EpSession.openWith(world, caseOf(), (rank) => {
    const take = (bytes: number): { buffer: DeviceBuffer; byteOffset: number } => {
      const buffer = world.ranks[rank]!.allocate(bytes + 2 * guardBytes);
      buffer.view('u8').fill(0xc5);
      owned.push({ buffer, bytes });
      return { buffer, byteOffset: guardBytes };
    };
    return { group: take(group.bytes), handle: take };
  });
  for (const epoch of [0, 1, 2, 3]) await requireStep(session, epoch);
  requireThat(
    owned.length === checkRanks * (1 + everyLayout.length),
    'the memory of the caller was not asked for',
  );
  for (const { buffer, bytes } of owned) {
    const view = buffer.view('u8');
    const outside = (at: number): boolean => at < guardBytes || at >= guardBytes + bytes;
    const at = view.findIndex((byte, index) => outside(index) && byte !== 0xc5);
    requireThat(at < 0, `byte ${at - guardBytes} of ${bytes} was written beside the memory of the caller`);
  }
  requireThat(
    owned.some(({ bytes }) => bytes === handle.bytes),
    'handles did not ask for what layoutOf says',
  );
  await session.dispose();
}

async function tooSmall(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: checkRanks });
  const { group } = layoutOf(smallConfig, checkRanks);
  const errors = await Promise.allSettled(
    world.ranks.map((communicator, rank) =>
      createEpGroup(communicator, {
        ...smallConfig,
        memory: { group: { buffer: communicator.allocate(rank === 2 ? group.bytes - 1 : group.bytes) } },
      }),
    ),
  );
  const codes = errors.map((result) =>
    result.status === 'rejected' && NcclExtError.is(result.reason) ? result.reason.code : 'went through',
  );
  requireThat(
    codes.join() === 'ERR_RANK_LOST,ERR_RANK_LOST,ERR_OUT_OF_BOUNDS,ERR_RANK_LOST',
    `the ranks end with ${codes}`,
  );
}

async function disposeInFlight(context: CheckContext): Promise<void> {
  const session = await openSession(context, everyLayout, { routings: [{ ids: 'uniform' }] });
  const steps = everyLayout.map((_, index) => session.openStep(index));
  for (const step of steps) await session.fill(step);
  // Rank 3 comes late, so nothing can be done before the handles are asked.
  for (const step of steps) session.enqueue(step, [0, 1, 2]);
  for (const handle of session.handles[0]!) await expectRefusal(() => handle.dispose(), { code: 'ERR_BUSY' });
  for (const step of steps) session.enqueue(step, [3]);
  await session.synchronize();
  for (const step of steps) await requireRight(session, step);
  await Promise.all(session.handles.flat().map((handle) => handle.dispose()));
}

async function busyHandle(context: CheckContext): Promise<void> {
  const session = await openSession(context, [{ layout: 'flat' }], { routings: [{ ids: 'uniform' }] });
  const step = session.openStep(0, { worstCase: true });
  const graphs = session.capture(step);
  await expectRefusal(() => session.handles[0]![0]!.dispose(), { code: 'ERR_BUSY' });
  await session.fill(step);
  for (const rank of session.allRanks) session.stream(rank, 0).launch(graphs[rank]!);
  await session.synchronize();
  await requireRight(session, step);
  await Promise.all(graphs.map((graph) => graph.dispose()));
  await session.dispose();
}

async function useAfterDispose(context: CheckContext): Promise<void> {
  const session = await openSession(context, [{ layout: 'flat' }, { layout: 'packed' }], { shared: true });
  const [first] = session.handles[0]!;
  await Promise.all(session.handles.map(([handle]) => handle!.dispose()));
  await expectRefusal(() => loose(first!).route(undefined, { stream: session.stream(0, 0) }), {
    code: 'ERR_DISPOSED',
  });
  await requireStep(session, 1);
  await Promise.all(session.groups.map((group) => group.dispose()));
  await expectRefusal(() => session.groups[0]!.createHandle({ layout: 'flat' }), { code: 'ERR_DISPOSED' });
  await expectRefusal(() => session.handles[0]![1]!.counts(), { code: 'ERR_DISPOSED' });
  await session.dispose();
}

async function twoGroups(context: CheckContext): Promise<void> {
  const world = await context.shared(checkRanks);
  const sessions = [
    await EpSession.open(world, caseOf()),
    await EpSession.open(world, caseOf(), { contexts: 1 }),
  ];
  const steps = sessions.map((session) => [0, 1, 2, 3].map((epoch) => session.openStep(epoch)));
  for (const [index, session] of sessions.entries())
    for (const step of steps[index]!) await session.fill(step);
  for (const epoch of [0, 1, 2, 3])
    for (const [index, session] of sessions.entries()) session.enqueue(steps[index]![epoch]!);
  for (const session of sessions) await session.synchronize();
  for (const [index, session] of sessions.entries())
    for (const step of steps[index]!) await requireRight(session, step);
  for (const session of sessions) await session.dispose();
}

/** Between round `warm` and the last one nothing may grow. */
export async function rounds(context: CheckContext, warm: number, total: number): Promise<void> {
  const world = await context.fresh({ ranks: checkRanks });
  let before: Awaited<ReturnType<typeof measureHeld>> | undefined;
  for (let round = 1; round <= total; round++) {
    const session = await EpSession.open(world, caseOf(), round % 3 === 0 ? { mask: true } : {});
    await requireStep(session, round);
    await session.dispose();
    if (round === warm) before = await measureHeld(world);
  }
  const grown = growth(before!, await measureHeld(world));
  requireThat(grown === undefined, `from round ${warm} to ${total} ${grown}`);
}

/** A dispatch that is sent and never completed keeps its buffers, which are younger than the group. */
async function openSend(context: CheckContext): Promise<void> {
  const session = await openSession(context, [{ layout: 'rank-major' }], { routings: [{ ids: 'uniform' }] });
  const step = session.openStep(0);
  await session.fill(step);
  for (const rank of session.allRanks) {
    const target = session.target(step, rank);
    enqueueRoute(session.epCase.config, target);
    sendDispatch(target);
  }
  await session.synchronize();
  await expectRefusal(() => step.memories[0]!.get('tokens')!.buffer.dispose(), { code: 'ERR_BUSY' });
  await expectRefusal(() => session.handles[0]![0]!.dispose(), { code: 'ERR_BUSY' });
  await context.end(session.world);
  await expectRefusal(() => session.groups[0]!.createHandle({ layout: 'flat' }), { code: 'ERR_DISPOSED' });
}
