// SPDX-License-Identifier: Apache-2.0
// What may be in flight at a time, and when inputs and outputs are whose.

import type { CheckCase } from '../../cases/case.js';
import { type CheckContext, expectRefusal, requireThat } from '../../run/check-context.js';
import { check } from '../../scenarios/crossed-move.js';
import { everyLayout, lowLatency } from '../cases/base.js';
import type { HandleSpec } from '../cases/ep-case.js';
import { enqueueCombine, enqueueDispatch, enqueueRoute, loose, sendDispatch } from '../run/enqueue-step.js';
import type { EpSession, OpenStep } from '../run/ep-session.js';
import { checkEach, openSession, requireRight, requireStep } from './steps.js';

export const epOrderChecks: readonly CheckCase[] = [
  ...checkEach('ep-order', 'ids may change after the route', idsChange),
  ...checkEach('ep-order', 'inputs may change after their operation', inputsChange, {
    reports: ['deepseek-ai/DeepEP#600'],
  }),
  ...checkEach('ep-order', 'outputs that another stream poisons first', poisonedElsewhere, {
    reports: ['deepseek-ai/DeepEP#753', 'deepseek-ai/DeepEP#589'],
  }),
  ...checkEach('ep-order', 'one dispatch serves several combines', severalCombines),
  ...checkEach('ep-order', 'the same bytes whoever is late', sameBytes, {
    reports: ['deepseek-ai/DeepEP#753', 'deepseek-ai/DeepEP#689'],
  }),
  check('ep-order', 'four sends are open at a time, a fifth is refused', openSends),
  check('ep-graphs', 'graphs reserve contexts until they are disposed', reservedContexts),
  check('ep-graphs', 'a graph and single steps in turn', graphAndSteps),
];

async function idsChange(context: CheckContext, handle: HandleSpec): Promise<void> {
  const session = await openSession(context, [handle], { shared: true });
  const step = session.openStep(0);
  await session.fill(step);
  for (const rank of session.allRanks) {
    const target = session.target(step, rank);
    enqueueRoute(session.epCase.config, target);
    target.stream.fill(target.memory.get('topkIdx')!.buffer, 0x7f);
    enqueueDispatch(session.epCase, target);
    enqueueCombine(session.epCase, target);
  }
  await session.synchronize();
  await requireRight(session, step);
  await session.dispose();
}

async function inputsChange(context: CheckContext, handle: HandleSpec): Promise<void> {
  const session = await openSession(context, [handle], { shared: true });
  for (const epoch of [0, 1, 2]) {
    const step = session.openStep(epoch);
    await session.fill(step);
    for (const rank of session.allRanks) {
      const target = session.target(step, rank);
      const spoil = (...names: string[]): void => {
        for (const name of names) target.stream.fill(target.memory.get(name)!.buffer, 0x7f);
      };
      enqueueRoute(session.epCase.config, target);
      enqueueDispatch(session.epCase, target);
      spoil('tokens', 'weights');
      enqueueCombine(session.epCase, target);
      spoil('rows');
    }
    await session.synchronize();
    await requireRight(session, step);
    await session.closeStep(step);
  }
  await session.dispose();
}

async function poisonedElsewhere(context: CheckContext, handle: HandleSpec): Promise<void> {
  const session = await openSession(context, [handle], { shared: true });
  const others = session.world.ranks.map((communicator) => communicator.createStream());
  const events = session.world.ranks.map((communicator) => communicator.createEvent());
  for (const epoch of [0, 1, 2, 3]) {
    const step = session.openStep(epoch);
    // The inputs and the poison come on other streams; an event is all that orders them.
    for (const rank of session.allRanks) {
      step.memories[rank]!.enqueueFill(others[rank]!, step.plan);
      others[rank]!.record(events[rank]!);
      session.stream(rank, 0).wait(events[rank]!);
    }
    session.enqueue(step);
    await session.synchronize();
    await requireRight(session, step);
    await session.closeStep(step);
  }
  await session.dispose();
  await Promise.all([...others, ...events].map((resource) => resource.dispose()));
}

async function severalCombines(context: CheckContext, handle: HandleSpec): Promise<void> {
  const session = await openSession(context, [handle], { shared: true });
  const step = session.openStep(0);
  await session.fill(step);
  session.enqueue(step);
  for (const rank of session.allRanks) {
    enqueueCombine(session.epCase, session.target(step, rank));
    enqueueDispatch(session.epCase, session.target(step, rank));
    enqueueCombine(session.epCase, session.target(step, rank));
  }
  await session.synchronize();
  await requireRight(session, step);
  await session.dispose();
}

async function sameBytes(context: CheckContext, handle: HandleSpec): Promise<void> {
  const session = await openSession(context, [handle], { config: { topK: 4, hidden: 64 } });
  const faults = context.faultsOf(session.world);
  let first: string | undefined;
  for (const slow of [[], [0], [3, 1], [2]]) {
    for (const rank of slow) faults.delay(rank, 3 + rank);
    const step = session.openStep(0);
    await session.fill(step);
    session.enqueue(step);
    await session.synchronize();
    await requireRight(session, step);
    const bytes = bytesOf(step);
    first ??= bytes;
    requireThat(bytes === first, `other bytes when ranks ${slow} are late`);
    await session.closeStep(step);
    for (const rank of slow) faults.delay(rank, 0);
  }
}

function bytesOf({ memories }: OpenStep): string {
  return memories
    .map((memory) =>
      memory
        .lastRead()
        .map((bytes) => Buffer.from(bytes).toString('base64'))
        .join(),
    )
    .join();
}

/** Four contexts; each open send keeps one. */
async function openSends(context: CheckContext): Promise<void> {
  const handles = [...lowLatency, ...lowLatency, lowLatency[0]!];
  const session = await openSession(context, handles, { routings: [{ ids: 'uniform' }] });
  const steps = handles.map((_, index) => session.openStep(index));
  for (const step of steps) await session.fill(step);
  const send = (step: OpenStep, rank: number): void => sendDispatch(session.target(step, rank));
  for (const step of steps)
    for (const rank of session.allRanks) enqueueRoute(session.epCase.config, session.target(step, rank));
  for (const step of steps.slice(0, 4)) for (const rank of session.allRanks) send(step, rank);
  for (const rank of session.allRanks)
    await expectRefusal(() => send(steps[4]!, rank), { code: 'ERR_CONTEXTS', says: ['4'] });
  // Not in the order of the sends.
  for (const step of [2, 0, 3, 1].map((index) => steps[index]!))
    for (const rank of session.allRanks) complete(session, step, rank);
  for (const rank of session.allRanks) send(steps[4]!, rank);
  for (const rank of session.allRanks) complete(session, steps[4]!, rank);
  for (const step of steps)
    for (const rank of session.allRanks) enqueueCombine(session.epCase, session.target(step, rank));
  await session.synchronize();
  for (const step of steps) await requireRight(session, step);
}

function complete(session: EpSession, step: OpenStep, rank: number): void {
  const { handle, stream } = session.target(step, rank);
  loose(handle).complete({ stream });
}

async function reservedContexts(context: CheckContext): Promise<void> {
  const session = await openSession(context, [{ layout: 'flat' }, { layout: 'packed', alignment: 4 }], {
    routings: [{ ids: 'uniform' }],
    config: { contexts: 2 },
  });
  const steps = [0, 1].map((handleIndex) => session.openStep(handleIndex, { worstCase: true, handleIndex }));
  const graphs = steps.map((step) => session.capture(step));
  const extra = session.openStep(2);
  for (const rank of session.allRanks)
    await expectRefusal(() => session.enqueue(extra, [rank]), { code: 'ERR_CONTEXTS' });
  for (const [index, step] of steps.entries()) {
    await session.fill(step);
    for (const rank of session.allRanks) session.stream(rank, 0).launch(graphs[index]![rank]!);
    await session.synchronize();
    await requireRight(session, step);
  }
  await Promise.all(graphs[0]!.map((graph) => graph.dispose()));
  for (const epoch of [2, 4]) await requireStep(session, epoch);
  await Promise.all(graphs[1]!.map((graph) => graph.dispose()));
}

async function graphAndSteps(context: CheckContext): Promise<void> {
  const session = await openSession(context, everyLayout, {
    routings: [{ ids: 'uniform' }],
    config: { contexts: 8 },
  });
  const first = session.openStep(0, { worstCase: true, handleIndex: 0 });
  const graphs = session.capture(first);
  for (const epoch of [1, 2, 3, 4, 5, 6]) {
    const step = session.redraw(first, epoch, { worstCase: true });
    await session.fill(step);
    for (const rank of session.allRanks) session.stream(rank, 0).launch(graphs[rank]!);
    await session.synchronize();
    await requireRight(session, step);
    await requireStep(session, epoch);
  }
  await Promise.all(graphs.map((graph) => graph.dispose()));
}
