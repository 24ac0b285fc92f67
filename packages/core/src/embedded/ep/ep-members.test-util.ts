// SPDX-License-Identifier: Apache-2.0
// A group of three ranks whose members change, and steps of the two that are left.

import { inWorld, type TestWorld } from '../harness.test-util.js';
import { enqueueStep, type RankStep } from './ep-calls.test-util.js';
import type { Rules } from './ep-oracle.test-util.js';
import { EpWorld, type Shape } from './ep-world.test-util.js';

export const shape: Shape = { ranks: 3, experts: 6, topK: 2, hidden: 16, dtype: 'bf16', maxTokens: 4 };
export const timeoutMs = 300;
export const mask = (...members: number[]): Uint8Array =>
  Uint8Array.from({ length: 3 }, (_, rank) => (members.includes(rank) ? 1 : 0));

export const inGroup = (
  body: (world: EpWorld, test: TestWorld) => Promise<void>,
  options: Parameters<typeof EpWorld.open>[2] = {},
): Promise<void> =>
  inWorld(shape.ranks, { timeoutMs: 5000 }, async (test) =>
    body(await EpWorld.open(test, shape, { timeoutMs, mask: true, ...options }), test),
  );

export const change = (world: EpWorld, members: readonly number[]) =>
  Promise.all(members.map((rank) => world.ep.changeMembership(world.groups[rank]!, mask(...members))));

/** One step of ranks 0 and 1; rank 2 enqueues nothing. */
export function twoRanks(
  world: EpWorld,
  layout: 'expert-major' | 'flat',
  handles: readonly number[],
  rules: Rules,
  next: () => number,
): readonly RankStep[] {
  const routings = [0, 1, 2].map((rank) => {
    const tokens = rank < 2 ? 1 + Math.floor(next() * shape.maxTokens) : 0;
    const ids = Int32Array.from({ length: tokens * 2 }, (_, i) => (i % 2) * 3 + Math.floor(next() * 3));
    return { tokens, ids, weights: Float32Array.from(ids, () => next()) };
  });
  return enqueueStep(world, layout, handles.slice(0, 2), rules, next, routings);
}
