// SPDX-License-Identifier: Apache-2.0
// Rows beyond a receive budget: refused with the exact demand, or dropped by the policy, and never a byte out of place.

import { describe, expect, it } from 'vitest';
import { code, error, inWorld, ok, refused } from '../harness.test-util.js';
import { checkDispatched, dispatchCall, enqueueStep, freeSteps, routeCall } from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random, randomRouting } from './ep-data.test-util.js';
import { receive } from './ep-oracle.test-util.js';
import { EpWorld, placementOf, type Shape } from './ep-world.test-util.js';

const shape: Shape = { ranks: 3, experts: 7, topK: 3, hidden: 16, dtype: 'bf16', maxTokens: 8 };

describe.each(['flat', 'packed'] as const)('%s', (layout) => {
  it.each(['drop-by-source', 'drop-by-weight'] as const)('%s keeps what the oracle keeps', async (policy) => {
    for (const budget of [1, 5, 9, 16]) {
      await inWorld(shape.ranks, {}, async (test) => {
        const world = await EpWorld.open(test, shape, {
          receiveBudget: budget,
          overflow: policy,
          debugFill: -1,
        });
        const alignment = layout === 'packed' ? 4 : 1;
        const handles = world.handles(layout, alignment);
        const next = random(budget);
        const rules = { placement: placementOf(shape), budget, policy, alignment };
        for (let round = 0; round < 4; round++) {
          const done = enqueueStep(world, layout, handles, rules, next);
          await world.finish();
          checkDispatched(world, layout, done, alignment);
          await combineStep(world, layout, handles, done, next, { backward: round % 2 === 1 });
          freeSteps(world, done);
        }
      });
    }
  });

  it('refuses the route on every rank under policy error, and goes on', async () => {
    await inWorld(shape.ranks, {}, async (test) => {
      const world = await EpWorld.open(test, shape, { receiveBudget: 10 });
      const handles = world.handles(layout);
      const next = random(1);
      const rules = { placement: placementOf(shape), budget: 10, policy: 'error' as const };
      const hot = world.streams.map(() => ({
        tokens: 8,
        ids: Int32Array.from({ length: 24 }, (_, i) => i % 3),
        weights: new Float32Array(24),
      }));
      const done = enqueueStep(world, layout, handles, rules, next, hot);
      const demand = receive(shape, layout, rules, hot, 0).demand;
      const outcomes = await world.synchronize();
      expect(error(outcomes[0]!)).toMatchObject({
        code: code('ERR_OVERFLOW'),
        op: 'route',
        rank: 0,
        seen: demand,
        expected: 10,
      });
      expect(error(outcomes[1]!)).toMatchObject({
        code: code('ERR_OVERFLOW'),
        rank: 1,
        peer: 0,
        seen: demand,
      });
      for (const { ranges, outRows } of done)
        expect(world.bytes(ranges.outTokens!, outRows * 32).every((byte) => byte === 0xa5)).toBe(true);
      const cold = world.streams.map(() => randomRouting({ ...shape, maxTokens: 1 }, next));
      const again = enqueueStep(world, layout, handles, rules, next, cold);
      await world.finish();
      checkDispatched(world, layout, again);
    });
  });

  it('refuses a dispatch whose buffer is too small on one rank, on all ranks, before a byte moves', async () => {
    await inWorld(shape.ranks, {}, async (test) => {
      const world = await EpWorld.open(test, shape);
      const handles = world.handles(layout);
      const next = random(2);
      const routings = world.streams.map(() => ({
        tokens: 8,
        ids: Int32Array.from({ length: 24 }, (_, i) => (i % 3) * 2),
        weights: new Float32Array(24),
      }));
      const outs = handles.map((handle, rank) => {
        const { ids, weights, tokens } = routings[rank]!;
        const want = receive(shape, layout, { placement: placementOf(shape) }, routings, rank).rows;
        const rows = rank === 1 ? want - 1 : want;
        const out = world.put(rank, new Uint8Array(rows * 32).fill(0xee));
        world.route(rank, handle, routeCall({ tokens, topkIdx: world.ids(rank, ids) }));
        world.dispatch(
          rank,
          handle,
          dispatchCall(shape, {
            tokens: world.put(rank, new Uint8Array(tokens * 32)),
            topkWeights: world.put(rank, weights),
            outTokens: out,
            outRows: rows,
          }),
        );
        return { out, rows, want };
      });
      const outcomes = await world.synchronize();
      expect(error(outcomes[1]!)).toMatchObject({
        code: code('ERR_OVERFLOW'),
        op: 'dispatch',
        rank: 1,
        seen: outs[1]!.want,
        expected: outs[1]!.rows,
      });
      expect(error(outcomes[0]!)).toMatchObject({ code: code('ERR_OVERFLOW'), peer: 1 });
      for (const { out, rows } of outs)
        expect(world.bytes(out, rows * 32).every((byte) => byte === 0xee)).toBe(true);
      const done = enqueueStep(world, layout, handles, { placement: placementOf(shape) }, next);
      await world.finish();
      checkDispatched(world, layout, done);
    });
  });
});

it('asks for buffers of at least the budget, and for weights where they decide', async () => {
  await inWorld(2, {}, async (test) => {
    const world = await EpWorld.open(
      test,
      { ...shape, ranks: 2 },
      { receiveBudget: 6, overflow: 'drop-by-weight' },
    );
    const handle = world.handle(0, 'flat');
    const stream = world.streams[0]!;
    const topkIdx = world.ids(0, new Int32Array(6).fill(-1));
    const record = refused(
      test.runtime,
      world.ep.enqueueRoute(handle, stream, routeCall({ tokens: 2, topkIdx })),
      'ERR_INVALID_ARGUMENT',
    );
    expect(record.detail).toContain('topkWeights');
    const weights = world.put(0, new Float32Array(6));
    ok(
      test.runtime,
      world.ep.enqueueRoute(handle, stream, routeCall({ tokens: 2, topkIdx, topkWeights: weights })),
    );
    const call = dispatchCall(shape, {
      tokens: world.allocate(0, 64),
      topkWeights: weights,
      outTokens: world.allocate(0, 160),
      outRows: 5,
    });
    expect(
      refused(test.runtime, world.ep.enqueueDispatch(handle, stream, call), 'ERR_INVALID_ARGUMENT').detail,
    ).toContain('budget');
    test.runtime.abortRank(test.ranks[0]!, 'the other rank does not route');
  });
});
