// SPDX-License-Identifier: Apache-2.0
// What the device finds wrong: every rank learns of it, nothing moves, and the next step is right.

import type { CheckCase } from '../../cases/case.js';
import { type CheckContext, errorOf, requireRefusal, requireThat } from '../../run/check-context.js';
import { check } from '../../scenarios/crossed-move.js';
import { highThroughput } from '../cases/base.js';
import type { HandleSpec } from '../cases/ep-case.js';
import { enqueueCombine, enqueueDispatch, enqueueRoute, loose } from '../run/enqueue-step.js';
import type { EpSession, OpenStep } from '../run/ep-session.js';
import { checkEach, openSession, requireRight, requireStep, settle } from './steps.js';

/** What is wrong with position 1 of token 2 on rank 1; there are 8 experts. */
const wrongIds: readonly (readonly [string, 'i32' | 'i64', number])[] = [
  ['an id beyond the last expert', 'i32', 8],
  ['a negative id that is not -1', 'i32', -2],
  ['an id that is far too large', 'i64', 2 ** 33 + 3],
  ['an id twice in a token', 'i32', Number.NaN],
];

export const refusalChecks: readonly CheckCase[] = [
  ...wrongIds.flatMap(([what, index, id]) =>
    checkEach('ep-refusals', what, (context, handle) => wrongId(context, handle, index, id)),
  ),
  ...highThroughput.map((handle) =>
    check('ep-budgets', `${handle.layout}, a budget that overflows is named on every rank`, (context) =>
      overflow(context, handle),
    ),
  ),
  ...highThroughput.map((handle) =>
    check(
      'ep-budgets',
      `${handle.layout}, a buffer that is too small is named, and a larger one then works`,
      (context) => smallBuffer(context, handle),
    ),
  ),
  ...checkEach('ep-refusals', 'ranks that enqueue different operations', differentOrder),
  check('ep-refusals', 'ranks that route on different handles', differentHandles),
  check('ep-refusals', 'an operation whose descriptor arrives altered', altered),
];

async function wrongId(
  context: CheckContext,
  handle: HandleSpec,
  index: 'i32' | 'i64',
  wrong: number,
): Promise<void> {
  const session = await openSession(context, [handle], {
    shared: true,
    index,
    config: { receiveBudget: 96 },
  });
  await requireStep(session, 0);
  const step = session.openStep(1);
  const { ids } = step.plan.inputs[1]!.routing;
  // Token 2 begins at 4 with top-2.
  ids[4] = 3;
  await session.fill(step);
  const id = Number.isNaN(wrong) ? 3 : wrong;
  const idx = step.memories[1]!.get('topkIdx')!;
  const bytes = index === 'i64' ? BigInt64Array.of(BigInt(id)) : Int32Array.of(id);
  const stream = session.streams[1]![0]!;
  stream.upload(idx.buffer, bytes, idx.byteOffset + 5 * bytes.byteLength);
  await stream.synchronize();
  session.enqueue(step);
  const errors = await settle(session);
  for (const [rank, error] of errors.entries()) {
    const own = rank === 1 ? {} : { peer: 1 };
    requireRefusal(error, { code: 'ERR_ROUTING', says: ['token 2', 'rank 1', 'position 1'], ...own });
  }
  await requireUntouched(session, step);
  await requireStep(session, 2);
  await session.dispose();
}

async function overflow(context: CheckContext, handle: HandleSpec): Promise<void> {
  // Everything goes to rank 3, which has room for 8 rows.
  const session = await openSession(context, [handle], {
    shared: true,
    routings: [{ ids: 'own-rank', tokens: [2] }, { ids: 'one-rank' }],
    config: { receiveBudget: 8 },
  });
  await requireStep(session, 0);
  const step = session.openStep(1);
  await session.fill(step);
  session.enqueue(step);
  const { demand } = step.plan.received[3]!;
  for (const [rank, error] of (await settle(session)).entries()) {
    const own = rank === 3 ? {} : { peer: 3 };
    requireRefusal(error, { code: 'ERR_OVERFLOW', says: [String(demand), 'rank 3'], ...own });
  }
  await requireUntouched(session, step);
  await requireStep(session, 2);
  await session.dispose();
}

async function smallBuffer(context: CheckContext, handle: HandleSpec): Promise<void> {
  const session = await openSession(context, [handle], { shared: true, exactRows: true });
  const step = session.openStep(0);
  const { plan } = step;
  const short = session.openStep(0);
  await session.fill(step);
  await session.fill(short);
  const tooSmall = plan.received.findIndex(({ total }) => total > 1);
  const out = short.memories[tooSmall]!.get('out.tokens')!;
  const rows = plan.outRows[tooSmall]!;
  for (const rank of session.allRanks) {
    const target = session.target(step, rank);
    enqueueRoute(session.epCase.config, target);
    const { stream, handle: own, memory } = target;
    const small = { ...out, shape: [rows - 1, out.shape[1]!] };
    const tokens = rank === tooSmall ? small : memory.get('out.tokens')!;
    loose(own).dispatch(memory.get('tokens'), { stream, weights: memory.get('weights'), out: { tokens } });
  }
  for (const [rank, error] of (await settle(session)).entries()) {
    const own = rank === tooSmall ? {} : { peer: tooSmall };
    requireRefusal(error, { code: 'ERR_OVERFLOW', says: [String(rows)], ...own });
  }
  await session.fill(step);
  for (const rank of session.allRanks) {
    // By the routing that is there already.
    enqueueDispatch(session.epCase, session.target(step, rank));
    enqueueCombine(session.epCase, session.target(step, rank));
  }
  await session.synchronize();
  await requireDispatched(session, step);
  await session.dispose();
}

async function differentOrder(context: CheckContext, handle: HandleSpec): Promise<void> {
  const session = await openSession(context, [handle], { timeoutMs: 2000 });
  await requireStep(session, 0);
  const step = session.openStep(1);
  await session.fill(step);
  for (const rank of session.allRanks) {
    const target = session.target(step, rank);
    enqueueRoute(session.epCase.config, target);
    enqueueDispatch(session.epCase, target);
    // The second operation of rank 2 is the first one again.
    if (rank === 2) enqueueDispatch(session.epCase, target);
    else enqueueCombine(session.epCase, target);
  }
  for (const error of await settle(session))
    requireRefusal(error, { code: 'ERR_DISAGREEMENT', peer: 2, says: ['rank 2'] });
  await requireStep(session, 2);
}

async function differentHandles(context: CheckContext): Promise<void> {
  const session = await openSession(context, [{ layout: 'flat' }, { layout: 'flat' }]);
  const [first, second] = [session.openStep(0), session.openStep(1)];
  await session.fill(first);
  await session.fill(second);
  for (const rank of session.allRanks)
    enqueueRoute(session.epCase.config, session.target(rank === 0 ? second : first, rank));
  for (const error of await settle(session))
    requireRefusal(error, { code: 'ERR_DISAGREEMENT', peer: 0, says: ['rank 0'] });
  await requireStep(session, 2);
  await requireStep(session, 3);
}

async function altered(context: CheckContext): Promise<void> {
  const session = await openSession(context, highThroughput);
  context.faultsOf(session.world).disagree(3, 'dispatch');
  const step = session.openStep(0);
  await session.fill(step);
  session.enqueue(step);
  for (const error of await settle(session)) requireRefusal(error, { code: 'ERR_DISAGREEMENT', peer: 3 });
  await requireStep(session, 2);
}

/** Not one byte of what a dispatch or combine would write. */
async function requireUntouched(session: EpSession, step: OpenStep): Promise<void> {
  for (const rank of session.allRanks) {
    for (const name of ['out.tokens', 'out.topkWeights', 'out.topkIdx', 'result.tokens']) {
      const tensor = step.memories[rank]!.get(name);
      if (tensor === undefined) continue;
      const bytes = new Uint8Array(tensor.buffer.bytes);
      const stream = session.streams[rank]![0]!;
      stream.download(bytes, tensor.buffer);
      requireThat((await errorOf(stream.synchronize())) === undefined, `rank ${rank} cannot be read`);
      const at = bytes.findIndex((byte) => byte !== bytes[0]);
      requireThat(at < 0, `rank ${rank}, ${name}: byte ${at} was written by a step that was refused`);
    }
  }
}

/** Rows and sums; counts of a route that was not filled again are left out. */
async function requireDispatched(session: EpSession, step: OpenStep): Promise<void> {
  for (const rank of session.allRanks) enqueueRoute(session.epCase.config, session.target(step, rank));
  await session.synchronize();
  await requireRight(session, step);
}
