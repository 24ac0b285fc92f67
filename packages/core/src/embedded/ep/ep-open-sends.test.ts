// SPDX-License-Identifier: Apache-2.0
// Open sends of several handles complete in any order.

import { describe, it } from 'vitest';
import { ok } from '../harness.test-util.js';
import { checkDispatched, type RankStep } from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { inGroup, poison, resend, routed } from './ep-contexts.test-util.js';
import { random } from './ep-data.test-util.js';

describe.each(['expert-major', 'rank-major'] as const)('sends in %s', (layout) => {
  it.each([1, 2, 8])('of several handles complete in any order with %i workers', async (workers) => {
    await inGroup(workers, async (world, test) => {
      const next = random(workers);
      const all = [0, 1, 2].map(() => world.handles(layout));
      const steps: (readonly RankStep[])[] = [];
      for (const handles of all) steps.push(await routed(world, layout, handles, next));
      for (let round = 0; round < 20; round++) {
        for (const list of steps) poison(world, list);
        const order = [0, 1, 2].sort(() => next() - 0.5);
        const ends = [0, 1, 2].sort(() => next() - 0.5);
        world.streams.forEach((stream, rank) => {
          for (const i of order)
            ok(test.runtime, resend(world, all[i]![rank]!, rank, steps[i]![rank]!, true));
          for (const i of ends) ok(test.runtime, world.ep.enqueueComplete(all[i]![rank]!, stream));
        });
        await world.finish();
        for (const list of steps) checkDispatched(world, layout, list);
      }
      await combineStep(world, layout, all[1]!, steps[1]!, next, { sendOnly: true });
    });
  });
});
