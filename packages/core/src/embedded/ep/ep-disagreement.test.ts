// SPDX-License-Identifier: Apache-2.0
// Ranks that bring different configurations or enqueue different operations: every one learns who differs and in what.

import { describe, expect, it } from 'vitest';
import { absentRange, type EpLayout } from '../../contract/index.js';
import { code, error, inWorld, ok, type TestWorld } from '../harness.test-util.js';
import { checkDispatched, combineCall, dispatchCall, enqueueStep, routeCall } from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random } from './ep-data.test-util.js';
import { EpWorld, groupLayout, placementOf, type Shape } from './ep-world.test-util.js';

const shape: Shape = { ranks: 3, experts: 6, topK: 2, hidden: 16, dtype: 'f32', maxTokens: 4 };
const rules = { placement: placementOf(shape) };

const inGroup = (
  body: (world: EpWorld, test: TestWorld) => Promise<void>,
  options: Parameters<typeof EpWorld.open>[2] = {},
): Promise<void> =>
  inWorld(shape.ranks, { timeoutMs: 2000 }, async (test) =>
    body(await EpWorld.open(test, shape, options), test),
  );

async function works(world: EpWorld, layout: EpLayout, handles: readonly number[]): Promise<void> {
  const next = random(5);
  const done = enqueueStep(world, layout, handles, rules, next);
  await world.finish();
  checkDispatched(world, layout, done);
  await combineStep(world, layout, handles, done, next);
}

describe('disagreement', () => {
  it('in the configuration names ranks and field', async () => {
    await inWorld(3, {}, async (test) => {
      const world = await EpWorld.open(test, shape);
      const make = (agreed: readonly string[]) =>
        Promise.all(
          test.ranks.map((rank, i) => world.ep.createEpGroup(rank, world.config(i, { agreed: agreed[i]! }))),
        );
      const [a, , c] = await make([
        '{"topK":2,"hidden":16}',
        '{"topK":2,"hidden":16}',
        '{"topK":2,"hidden":32}',
      ]);
      expect(error(a!)).toMatchObject({
        code: code('ERR_DISAGREEMENT'),
        rank: 0,
        peer: 2,
        expected: '16',
        seen: '32',
      });
      expect(error(c!).detail).toContain('rank 2 and the others hold different values of hidden');
      test.faults.disagree(test.ranks[1]!, 'createEpGroup');
      expect(error((await make(['{}', '{}', '{}']))[0]!)).toMatchObject({
        code: code('ERR_DISAGREEMENT'),
        peer: 1,
      });
      const differing = test.ranks.map((rank, i) =>
        world.ep.createEpGroup(rank, {
          ...world.config(i),
          contexts: i === 0 ? 2 : 3,
          layout: groupLayout(shape, 4),
        }),
      );
      expect(error((await Promise.all(differing))[1]!).detail).toContain('contexts');
    });
  });

  it('in the order of handles, the kind of operation, or by injection ends both on every rank', async () => {
    await inGroup(async (world, test) => {
      const [first, second] = [world.handles('rank-major'), world.handles('rank-major')];
      const next = random(6);
      const order = (rank: number): readonly (readonly number[])[] =>
        rank === 1 ? [second, first] : [first, second];
      const call = (rank: number) =>
        dispatchCall(shape, {
          outTokens: world.allocate(rank, 12 * 64),
          outRows: 12,
        });
      for (const handles of [first, second])
        handles.forEach((handle, rank) => {
          const topkIdx = { ...absentRange, entryBytes: 4 as const };
          world.route(rank, handle, routeCall({ tokens: 0, topkIdx }));
        });
      world.streams.forEach((stream, rank) => {
        for (const handles of order(rank))
          ok(test.runtime, world.ep.enqueueDispatch(handles[rank]!, stream, call(rank)));
      });
      for (const outcome of await world.synchronize())
        expect(error(outcome)).toMatchObject({
          code: code('ERR_DISAGREEMENT'),
          op: 'dispatch',
          peer: 1,
          expected: 0,
          seen: 1,
        });
      await works(world, 'rank-major', first);
      world.streams.forEach((stream, rank) => {
        ok(
          test.runtime,
          rank === 2
            ? world.ep.enqueueDispatch(first[rank]!, stream, {
                ...call(rank),
                tokens: world.allocate(rank, 4 * 64),
                topkWeights: world.allocate(rank, 32),
              })
            : world.ep.enqueueCombine(
                first[rank]!,
                stream,
                combineCall({
                  tokens: world.allocate(rank, 12 * 64),
                  rows: 12,
                  outTokens: world.allocate(rank, 4 * 64),
                }),
              ),
        );
      });
      const outcomes = await world.synchronize();
      expect(error(outcomes[0]!)).toMatchObject({
        code: code('ERR_DISAGREEMENT'),
        peer: 2,
        expected: 'combine',
        seen: 'dispatch',
      });
      expect(error(outcomes[0]!).detail).toContain('operation');
      test.faults.disagree(test.ranks[0]!, 'dispatch');
      enqueueStep(world, 'rank-major', second, rules, next);
      expect(error((await world.synchronize())[2]!)).toMatchObject({
        code: code('ERR_DISAGREEMENT'),
        peer: 0,
      });
      await works(world, 'rank-major', second);
    });
  });

  it('in pass and row bytes', async () => {
    await inGroup(async (world) => {
      const handles = world.handles('flat');
      const done = enqueueStep(world, 'flat', handles, rules, random(3));
      await world.finish();
      const send = (rank: number, partial: object) =>
        world.dispatch(
          rank,
          handles[rank]!,
          dispatchCall(shape, {
            tokens: done[rank]!.ranges.tokens!,
            topkWeights: done[rank]!.ranges.topkWeights!,
            outTokens: done[rank]!.ranges.outTokens!,
            outRows: done[rank]!.outRows,
            ...partial,
          }),
        );
      for (const rank of [0, 1, 2]) send(rank, rank === 0 ? { pass: 'backward' } : {});
      expect(error((await world.synchronize())[0]!).detail).toContain('differ in pass');
      for (const rank of [0, 1, 2])
        send(rank, { quantization: 'forward', ...(rank === 1 ? { rowBytes: 32, outRowBytes: 32 } : {}) });
      expect(error((await world.synchronize())[0]!).detail).toContain('differ in row bytes');
      await works(world, 'flat', handles);
    });
  });
});
