// SPDX-License-Identifier: Apache-2.0
// A group with routed handles, to send again as often as a test likes.

import type { EpLayout } from '../../contract/index.js';
import { inWorld, type TestWorld } from '../harness.test-util.js';
import { dispatchCall, enqueueStep, type RankStep } from './ep-calls.test-util.js';
import { EpWorld, placementOf, rowBytesOf, type Shape } from './ep-world.test-util.js';

export const shape: Shape = { ranks: 3, experts: 6, topK: 2, hidden: 16, dtype: 'bf16', maxTokens: 4 };
export const rules = { placement: placementOf(shape) };

export const inGroup = (
  workers: number,
  body: (world: EpWorld, test: TestWorld) => Promise<void>,
  options: Parameters<typeof EpWorld.open>[2] = {},
): Promise<void> =>
  inWorld(shape.ranks, { workers }, async (test) => body(await EpWorld.open(test, shape, options), test));

/** Routes on all ranks and waits, so that what follows can be enqueued as it likes. */
export async function routed(
  world: EpWorld,
  layout: EpLayout,
  handles: readonly number[],
  next: () => number,
): Promise<readonly RankStep[]> {
  const steps = enqueueStep(world, layout, handles, rules, next);
  await world.finish();
  return steps;
}

export function resend(
  world: EpWorld,
  handle: number,
  rank: number,
  step: RankStep,
  sendOnly: boolean,
  stream = world.streams[rank]!,
): number {
  return world.ep.enqueueDispatch(
    handle,
    stream,
    dispatchCall(shape, {
      tokens: step.ranges.tokens!,
      topkWeights: step.ranges.topkWeights!,
      outTokens: step.ranges.outTokens!,
      outRows: step.outRows,
      outWeights: step.ranges.outWeights!,
      outTopkIdx: { ...step.ranges.outTopkIdx!, entryBytes: 4 },
      expertCounts: { ...step.ranges.expertCounts!, entryBytes: 4 },
      sourceCounts: { ...step.ranges.sourceCounts!, entryBytes: 4 },
      sendOnly,
    }),
  );
}

export function poison(world: EpWorld, steps: readonly RankStep[]): void {
  for (const { ranges, outRows } of steps)
    world.bytes(ranges.outTokens!, outRows * rowBytesOf(shape)).fill(0xa5);
}
