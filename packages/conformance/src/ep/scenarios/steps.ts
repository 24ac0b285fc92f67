// SPDX-License-Identifier: Apache-2.0
// What checks of expert parallelism start from: a session of one layout on four ranks, and steps that must be right.

import type { EpLayout } from '@nccl-ext/core/contract';
import type { CheckCase } from '../../cases/case.js';
import type { GroupName } from '../../cases/groups.js';
import { type CheckContext, errorOf, requireThat } from '../../run/check-context.js';
import { check } from '../../scenarios/crossed-move.js';
import { epCase, everyLayout, uniform } from '../cases/base.js';
import type { HandleSpec } from '../cases/ep-case.js';
import { EpSession, type OpenStep } from '../run/ep-session.js';
import type { PlanOptions } from '../run/step-plan.js';

/** Ranks of every check. */
export const checkRanks = 4;

type Change = NonNullable<Parameters<typeof epCase>[2]>;

/** A session over one handle of each layout in `handles`. */
export async function openSession(
  context: CheckContext,
  handles: readonly HandleSpec[],
  change: Change & { readonly timeoutMs?: number; readonly shared?: boolean } = {},
): Promise<EpSession> {
  const { timeoutMs, shared = false, ...rest } = change;
  const world = shared
    ? await context.shared(checkRanks)
    : await context.fresh({ ranks: checkRanks, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
  return EpSession.open(world, epCase('ep-order', 'check', { handles, routings: [uniform], ...rest }));
}

/** One whole step among `ranks`, which must be right. */
export async function requireStep(
  session: EpSession,
  epoch: number,
  options: PlanOptions = {},
): Promise<void> {
  const step = session.openStep(epoch, options);
  const ranks = options.members ?? session.allRanks;
  await session.fill(step, ranks);
  session.enqueue(step, ranks);
  await session.synchronize(ranks);
  await requireRight(session, step, ranks);
  await session.closeStep(step);
}

/** All outputs are as the oracle says. */
export async function requireRight(
  session: EpSession,
  step: OpenStep,
  ranks: readonly number[] = session.allRanks,
): Promise<void> {
  const difference = await session.difference(step, ranks);
  requireThat(difference === undefined, `${difference}`);
}

/** What the first stream of each rank ends with. */
export function settle(session: EpSession, ranks: readonly number[] = session.allRanks): Promise<unknown[]> {
  return Promise.all(ranks.map((rank) => errorOf(session.streams[rank]![0]!.synchronize())));
}

/** The same check for each layout. */
export function checkEach(
  group: GroupName,
  what: string,
  run: (context: CheckContext, handle: HandleSpec) => Promise<void>,
  more: { readonly layouts?: readonly EpLayout[]; readonly reports?: readonly string[] } = {},
): CheckCase[] {
  const { layouts, ...rest } = more;
  return everyLayout
    .filter(({ layout }) => layouts?.includes(layout) ?? true)
    .map((handle) => check(group, `${handle.layout}, ${what}`, (context) => run(context, handle), rest));
}
