// SPDX-License-Identifier: Apache-2.0
// The backward pass scatters gradients to every row of their token, and sums them.

import { describe, expect, it } from 'vitest';
import { inWorld } from '../harness.test-util.js';
import { dispatchCall, enqueueStep } from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random } from './ep-data.test-util.js';
import { EpWorld, placementOf, type Shape } from './ep-world.test-util.js';

describe('backward', () => {
  it.each(['flat', 'packed'] as const)('scatters gradients and sums them in %s', async (layout) => {
    const of: Shape = { ranks: 3, experts: 6, topK: 3, hidden: 24, dtype: 'bf16', maxTokens: 5 };
    await inWorld(of.ranks, {}, async (test) => {
      const world = await EpWorld.open(test, of);
      const next = random(3);
      const handles = world.handles(layout, layout === 'packed' ? 4 : 1);
      const rules = { placement: placementOf(of), alignment: layout === 'packed' ? 4 : 1 };
      const done = enqueueStep(world, layout, handles, rules, next);
      await world.finish();
      await combineStep(world, layout, handles, done, next, { backward: true });
      const outs = handles.map((handle, rank) => {
        const out = world.allocate(rank, done[rank]!.outRows * 48);
        world.dispatch(
          rank,
          handle,
          dispatchCall(of, {
            pass: 'backward',
            tokens: done[rank]!.ranges.tokens!,
            outTokens: out,
            outRows: done[rank]!.outRows,
          }),
        );
        return out;
      });
      await world.finish();
      outs.forEach((out, rank) => {
        const bytes = done[rank]!.outRows * 48;
        expect(
          Buffer.compare(world.bytes(out, bytes), world.bytes(done[rank]!.ranges.outTokens!, bytes)),
        ).toBe(0);
      });
    });
  });
});
