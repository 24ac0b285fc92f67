// SPDX-License-Identifier: Apache-2.0
// Bad top-k ids end an operation on every rank before anything is written, and the group stays usable.

import { describe, expect, it } from 'vitest';
import type { EpLayout } from '../../contract/index.js';
import { code, error, inWorld, type TestWorld, value } from '../harness.test-util.js';
import { checkDispatched, dispatchCall, enqueueStep, routeCall } from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random } from './ep-data.test-util.js';
import { EpWorld, placementOf, rowBytesOf, type Shape } from './ep-world.test-util.js';

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

describe.each([
  ['expert-major', 'dispatch'],
  ['rank-major', 'dispatch'],
  ['flat', 'route'],
  ['packed', 'route'],
] as const)('bad ids in %s', (layout, op) => {
  it.each([
    ['out of range', [0, 1, 6, -1], 1, 0, 6],
    ['negative', [0, 1, 2, -2], 1, 1, -2],
    ['twice in a token', [0, 1, 5, 5], 1, 1, 5],
  ] as const)('%s: refused on every rank before anything is written', async (_, bad, token, position, id) => {
    await inGroup(async (world) => {
      const handles = world.handles(layout);
      const routings = world.streams.map((_stream, rank) => ({
        tokens: 2,
        ids: Int32Array.from(rank === 1 ? bad : [0, 3, -1, 2]),
        weights: new Float32Array(4),
      }));
      const next = random(1);
      const good = routings.map((routing) => ({
        ...routing,
        ids: routing.ids.map((x) => Math.max(-1, Math.min(5, x))),
      }));
      good[1]!.ids.fill(-1);
      // The oracle sizes buffers by sound ids; the calls carry the bad ones.
      const steps = enqueueStep(world, layout, handles, rules, next, [good[0]!, routings[1]!, good[2]!]);
      const outcomes = await world.synchronize();
      expect(error(outcomes[1]!)).toMatchObject({
        code: code('ERR_ROUTING'),
        op,
        rank: 1,
        peer: -1,
        seen: id,
      });
      expect(error(outcomes[1]!).detail).toContain(`position ${position} of token ${token}`);
      for (const rank of [0, 2])
        expect(error(outcomes[rank]!)).toMatchObject({ code: code('ERR_ROUTING'), op, rank, peer: 1 });
      for (const { ranges, outRows } of steps)
        expect(world.bytes(ranges.outTokens!, outRows * 64).every((byte) => byte === 0xa5)).toBe(true);
      expect(error(await world.ep.readCounts(handles[0]!)).code).toBe(code('ERR_INVALID_STATE'));
      await works(world, layout, handles);
    });
  });
});

it.each(['expert-major', 'flat'] as const)('names an id of 64 bits as it is, in %s', async (layout) => {
  for (const [id, seen] of [
    [2n ** 31n, 2 ** 31],
    [-(2n ** 40n), -(2 ** 40)],
    [2n ** 63n - 1n, Number.MAX_SAFE_INTEGER],
  ] as const)
    await inGroup(async (world) => {
      world.handles(layout).forEach((handle, rank) => {
        const ids = world.put(rank, BigInt64Array.of(0n, rank === 1 ? id : 1n));
        const topkIdx = { ...ids, entryBytes: 8 } as const;
        world.route(rank, handle, routeCall({ tokens: 1, topkIdx }));
        if (layout === 'flat') return;
        const call = dispatchCall(shape, {
          tokens: world.allocate(rank, rowBytesOf(shape)),
          topkWeights: world.allocate(rank, 8),
          outTokens: world.allocate(rank, world.local(rank) * 3 * shape.maxTokens * rowBytesOf(shape)),
          outRows: world.local(rank) * 3 * shape.maxTokens,
        });
        world.dispatch(rank, handle, call);
      });
      const outcomes = await world.synchronize();
      expect(error(outcomes[1]!)).toMatchObject({ code: code('ERR_ROUTING'), seen });
      expect(error(outcomes[0]!).detail).toContain(`names expert ${seen}`);
    });
});

it('reads ids of 64 bits', async () => {
  await inGroup(async (world, test) => {
    const handle = world.handles('expert-major')[0]!;
    const big = world.put(0, BigInt64Array.of(2n ** 40n, 0n));
    world.route(0, handle, routeCall({ tokens: 1, topkIdx: { ...big, entryBytes: 8 } }));
    value(await test.runtime.synchronize(world.streams[0]!));
    const handles = world.handles('flat');
    handles.forEach((flat, rank) => {
      const ids = world.put(rank, BigInt64Array.of(5n, -1n, 0n, BigInt(1 + rank)));
      world.route(rank, flat, routeCall({ tokens: 2, topkIdx: { ...ids, entryBytes: 8 } }));
    });
    await world.finish();
    expect([...value(await world.ep.readCounts(handles[2]!)).perSource]).toEqual([1, 1, 1]);
    expect([...value(await world.ep.readCounts(handles[0]!)).perExpert]).toEqual([3, 1]);
  });
});
