// SPDX-License-Identifier: Apache-2.0
// Every layout against the oracle: rows, weights, ids, counts and sums, for random routings and any number of workers.

import { describe, expect, it } from 'vitest';
import { type EpLayout, epLayouts } from '../../contract/index.js';
import { inWorld, value } from '../harness.test-util.js';
import { checkDispatched, enqueueStep, freeSteps } from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random, randomRouting } from './ep-data.test-util.js';
import { EpWorld, placementOf, type Shape } from './ep-world.test-util.js';

const small: Shape = { ranks: 4, experts: 10, topK: 3, hidden: 40, dtype: 'bf16', maxTokens: 7 };

async function steps(
  layout: EpLayout,
  shape: Shape,
  options: {
    workers?: number;
    seed: number;
    rounds?: number;
    alignment?: number;
    reduction?: 'rank' | 'token';
  },
): Promise<void> {
  await inWorld(shape.ranks, { workers: options.workers ?? 2 }, async (test) => {
    const reduction = options.reduction ?? 'rank';
    const world = await EpWorld.open(test, shape, { reduction });
    const alignment = options.alignment ?? 1;
    const handles = world.handles(layout, alignment);
    const next = random(options.seed);
    const rules = { placement: placementOf(shape), alignment };
    for (let round = 0; round < (options.rounds ?? 4); round++) {
      const done = enqueueStep(world, layout, handles, rules, next);
      await world.finish();
      checkDispatched(world, layout, done, alignment);
      await combineStep(world, layout, handles, done, next, { reduction });
      freeSteps(world, done);
    }
  });
}

describe.each(epLayouts)('%s', (layout) => {
  it.each([1, 2, 8])('moves and sums ragged tokens with %i workers', async (workers) => {
    await steps(layout, small, { workers, seed: workers });
  });

  it.each(['f32', 'f16', 'bf16'] as const)('sums %s', async (dtype) => {
    await steps(layout, { ...small, dtype, hidden: 24 }, { seed: 5 });
  });

  it.each([
    { ...small, ranks: 1, experts: 1, topK: 1 },
    { ...small, ranks: 2, experts: 40, topK: 32, maxTokens: 3 },
    { ...small, ranks: 8, experts: 8, topK: 8, maxTokens: 16, hidden: 8 },
  ])('works for $ranks ranks, $experts experts, top $topK', async (shape) => {
    await steps(layout, shape, { seed: 9 });
  });
});

it.each([2, 16, 128])('pads packed zones to %i', async (alignment) => {
  await steps('packed', small, { seed: alignment, alignment });
});

it.each(['expert-major', 'packed'] as const)('rounds once per token in %s when asked', async (layout) => {
  await steps(layout, small, { seed: 3, reduction: 'token' });
});

it('has one row per token and rank in flat, and tells counts', async () => {
  await inWorld(small.ranks, {}, async (test) => {
    const world = await EpWorld.open(test, small);
    const handles = world.handles('flat');
    const next = random(77);
    const routings = world.streams.map(() => randomRouting(small, next, small.maxTokens));
    const done = enqueueStep(world, 'flat', handles, { placement: placementOf(small) }, next, routings);
    for (const [rank, handle] of handles.entries()) {
      const counts = value(await world.ep.readCounts(handle));
      expect(counts.rows).toBe(done[rank]!.want.rows);
      expect([...counts.perExpert]).toEqual(done[rank]!.want.perExpert);
      expect([...counts.perSource]).toEqual(done[rank]!.want.perSource);
    }
    await world.finish();
  });
});
