// SPDX-License-Identifier: Apache-2.0
// Events of a rank that is aborted: what it had done is done, and what it only drained passes for nothing.

import type { CheckCase } from '../cases/case.js';
import { streamsOf } from '../run/case-streams.js';
import { type CheckContext, requireRefusal } from '../run/check-context.js';
import { check, moveRanks, settleStreams } from './crossed-move.js';

export const eventChecks: readonly CheckCase[] = [
  check('faults', 'a wait for what an aborted rank has not done names it', drained),
];

/** Rank 1 waits before the abort and rank 2 for rank 1; rank 3 comes later. */
async function drained(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks, timeoutMs: 20_000 });
  const [lost, early, behind, late] = streamsOf(world);
  const [done, missing] = [0, 1].map(() => world.ranks[0]!.createEvent());
  const passedOn = world.ranks[1]!.createEvent();
  lost!.record(done!);
  await lost!.synchronize();
  // Nobody else comes to the barrier.
  lost!.barrier();
  lost!.record(missing!);
  early!.wait(missing!);
  early!.record(passedOn);
  behind!.wait(passedOn);
  world.ranks[0]!.abort('the trainer restarts');
  for (const error of await settleStreams([early!, behind!]))
    requireRefusal(error, { code: 'ERR_RANK_LOST', peer: 0, says: ['rank 0'] });

  late!.wait(done!);
  await late!.synchronize();
  late!.wait(missing!);
  const [error] = await settleStreams([late!]);
  requireRefusal(error, { code: 'ERR_RANK_LOST', peer: 0, says: ['rank 0'] });
}
