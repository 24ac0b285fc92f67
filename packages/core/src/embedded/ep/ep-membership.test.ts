// SPDX-License-Identifier: Apache-2.0
// Members that stop: with a mask the others agree on who is left and go on, and the rank comes back; without, ranks are poisoned.

import { describe, expect, it } from 'vitest';
import { code, error, inWorld, ok, refused, type TestWorld, value } from '../harness.test-util.js';
import {
  checkDispatched,
  dispatchCall,
  enqueueStep,
  freeSteps,
  type RankStep,
} from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random } from './ep-data.test-util.js';
import type { Rules } from './ep-oracle.test-util.js';
import { EpWorld, placementOf, type Shape } from './ep-world.test-util.js';

const shape: Shape = { ranks: 3, experts: 6, topK: 2, hidden: 16, dtype: 'bf16', maxTokens: 4 };
const timeoutMs = 300;
const mask = (...members: number[]): Uint8Array =>
  Uint8Array.from({ length: 3 }, (_, rank) => (members.includes(rank) ? 1 : 0));

const inGroup = (
  body: (world: EpWorld, test: TestWorld) => Promise<void>,
  options: Parameters<typeof EpWorld.open>[2] = {},
): Promise<void> =>
  inWorld(shape.ranks, { timeoutMs: 5000 }, async (test) =>
    body(await EpWorld.open(test, shape, { timeoutMs, mask: true, ...options }), test),
  );

const change = (world: EpWorld, members: readonly number[]) =>
  Promise.all(members.map((rank) => world.ep.changeMembership(world.groups[rank]!, mask(...members))));

/** Lets rank 2 stop, and the others run into their deadline. */
async function loseRank2(
  world: EpWorld,
  test: TestWorld,
  layout: 'expert-major' | 'flat',
  handles: readonly number[],
): Promise<readonly RankStep[]> {
  test.faults.stopRank(test.ranks[2]!);
  const steps = enqueueStep(world, layout, handles, { placement: placementOf(shape) }, random(1));
  for (const rank of [0, 1]) {
    const record = error(await test.runtime.synchronize(world.streams[rank]!));
    expect(record).toMatchObject({ code: code('ERR_TIMEOUT'), rank, peer: 2 });
    expect(record.detail).toContain(`${timeoutMs} ms`);
  }
  return steps;
}

describe.each(['expert-major', 'flat'] as const)('%s', (layout) => {
  it('times out naming the rank, refuses until the members change, goes on without it, and takes it back', async () => {
    await inGroup(async (world, test) => {
      const { runtime } = test;
      const handles = world.handles(layout);
      const lost = await loseRank2(world, test, layout, handles);
      expect([...world.ep.groupState(world.groups[0]!).observed]).toEqual([0, 0, 1]);
      expect(world.ep.groupState(world.groups[0]!).epoch).toBe(1);
      expect(runtime.poisonOf(test.ranks[0]!)).toBeUndefined();
      const again = dispatchCall(shape, {
        tokens: lost[0]!.ranges.tokens!,
        topkWeights: lost[0]!.ranges.topkWeights!,
        outTokens: lost[0]!.ranges.outTokens!,
        outRows: lost[0]!.outRows,
      });
      refused(runtime, world.ep.enqueueDispatch(handles[0]!, world.streams[0]!, again), 'ERR_MEMBERSHIP');

      expect((await change(world, [0, 1])).map(value)).toEqual([2, 2]);
      expect(world.ep.groupState(world.groups[1]!)).toMatchObject({
        epoch: 2,
        active: mask(0, 1),
        observed: mask(),
      });
      expect(
        refused(runtime, world.ep.enqueueDispatch(handles[0]!, world.streams[0]!, again), 'ERR_INVALID_STATE')
          .detail,
      ).toContain('members changed');
      const two = { placement: placementOf(shape), active: [1, 1, 0] };
      const next = random(7);
      for (let round = 0; round < 3; round++) {
        const steps = twoRanks(world, layout, handles, two, next);
        for (const rank of [0, 1]) value(await runtime.synchronize(world.streams[rank]!));
        checkDispatched(world, layout, steps);
      }

      // What the removed rank had enqueued belongs to another epoch.
      test.faults.resumeRank(test.ranks[2]!);
      const late = error(await runtime.synchronize(world.streams[2]!));
      expect(late).toMatchObject({ code: code('ERR_MEMBERSHIP'), rank: 2 });
      expect(world.ep.groupState(world.groups[2]!)).toMatchObject({ epoch: 1, active: mask(0, 1, 2) });

      expect((await change(world, [0, 1, 2])).map(value)).toEqual([3, 3, 3]);
      for (let round = 0; round < 3; round++) {
        const steps = enqueueStep(world, layout, handles, { placement: placementOf(shape) }, next);
        await world.finish();
        checkDispatched(world, layout, steps);
        await combineStep(world, layout, handles, steps, next);
      }
    });
  });

  it('poisons the rank without a mask', async () => {
    await inGroup(
      async (world, test) => {
        const handles = world.handles(layout);
        await loseRank2(world, test, layout, handles);
        expect(test.runtime.poisonOf(test.ranks[0]!)).toMatchObject({ code: code('ERR_TIMEOUT'), peer: 2 });
        const refusal = error(await world.ep.changeMembership(world.groups[1]!, mask(0, 1)));
        expect(['ERR_POISONED', 'ERR_INVALID_STATE'].map((name) => code(name as 'ERR_POISONED'))).toContain(
          refusal.code,
        );
        test.faults.resumeRank(test.ranks[2]!);
        const late = error(await test.runtime.synchronize(world.streams[2]!));
        expect([code('ERR_TIMEOUT'), code('ERR_RANK_LOST')]).toContain(late.code);
      },
      { mask: false },
    );
  });
});

/** One step of ranks 0 and 1; rank 2 enqueues nothing. */
function twoRanks(
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

it('sends tokens to replicas that are left', async () => {
  const placement = [
    [0, 1, 2, 3],
    [2, 3, 4, 5],
    [4, 5, 0, 1],
  ];
  for (const localFirst of [false, true])
    await inGroup(
      async (world, test) => {
        const handles = world.handles('flat');
        const next = random(5);
        const steps = enqueueStep(world, 'flat', handles, { placement, localFirst }, next);
        await world.finish();
        checkDispatched(world, 'flat', steps);
        expect((await change(world, [0, 1])).map(value)).toEqual([2, 2]);
        const left = twoRanks(world, 'flat', handles, { placement, localFirst, active: [1, 1, 0] }, next);
        for (const rank of [0, 1]) value(await test.runtime.synchronize(world.streams[rank]!));
        checkDispatched(world, 'flat', left);
      },
      { placement, replicaRule: localFirst ? 'local-first' : 'by-token' },
    );
});

it('changes members only together: deadlines, disagreement, aborts and wrong lists', async () => {
  await inGroup(async (world, test) => {
    const { ep, groups } = world;
    const missing = error(await ep.changeMembership(groups[0]!, mask(0, 1)));
    expect(missing).toMatchObject({ code: code('ERR_TIMEOUT'), rank: 0, peer: 1 });
    expect(ep.groupState(groups[0]!)).toMatchObject({ epoch: 1, active: mask(0, 1, 2) });
    const differ = await Promise.all([
      ep.changeMembership(groups[0]!, mask(0, 1)),
      ep.changeMembership(groups[1]!, mask(0, 1, 2)),
    ]);
    for (const outcome of differ) expect(error(outcome)).toMatchObject({ code: code('ERR_DISAGREEMENT') });
    for (const wrong of [mask(1, 2), Uint8Array.of(1, 1), Uint8Array.of(1, 2, 0)])
      expect(error(await ep.changeMembership(groups[0]!, wrong)).code).toBe(code('ERR_INVALID_ARGUMENT'));
    test.faults.disagree(test.ranks[1]!, 'changeMembership');
    for (const outcome of await change(world, [0, 1]))
      expect(error(outcome).code).toBe(code('ERR_DISAGREEMENT'));
    test.faults.delayRank(test.ranks[1]!, 30);
    expect((await change(world, [0, 1, 2])).map(value)).toEqual([2, 2, 2]);
    test.faults.delayRank(test.ranks[1]!, 0);
    const waiting = [
      ep.changeMembership(groups[0]!, mask(0, 2)),
      ep.changeMembership(groups[0]!, mask(0, 2)),
    ];
    expect(error(await waiting[1]!).code).toBe(code('ERR_BUSY'));
    ok(test.runtime, test.runtime.abortRank(test.ranks[2]!, 'enough'));
    expect(error(await waiting[0]!)).toMatchObject({ code: code('ERR_RANK_LOST'), peer: 2 });
    expect((await change(world, [0, 1])).map(value)).toEqual([3, 3]);
  });
});

it('refuses only the rank that is not listed when it asks for other members', async () => {
  await inGroup(async ({ ep, groups }) => {
    const early = ep.changeMembership(groups[2]!, mask(0, 1, 2));
    const first = ep.changeMembership(groups[0]!, mask(0, 1));
    expect(error(await early)).toMatchObject({
      code: code('ERR_DISAGREEMENT'),
      rank: 2,
      peer: 0,
      expected: '0, 1',
      seen: '0, 1, 2',
    });
    const between = error(await ep.changeMembership(groups[2]!, mask(0, 1, 2)));
    expect(between).toMatchObject({ code: code('ERR_DISAGREEMENT'), rank: 2, peer: 0 });
    const second = ep.changeMembership(groups[1]!, mask(0, 1));
    expect([value(await first), value(await second)]).toEqual([2, 2]);
  });
});

it('ends an operation on an aborted member at once, and goes on without it', async () => {
  await inGroup(async (world, test) => {
    const handles = world.handles('expert-major');
    ok(test.runtime, test.runtime.abortRank(test.ranks[2]!, 'gone'));
    const next = random(1);
    const two = { placement: placementOf(shape), active: [1, 1, 0] };
    twoRanks(world, 'expert-major', handles, two, next);
    for (const rank of [0, 1])
      expect(error(await test.runtime.synchronize(world.streams[rank]!))).toMatchObject({
        code: code('ERR_RANK_LOST'),
        peer: 2,
      });
    expect([...world.ep.groupState(world.groups[0]!).observed]).toEqual([0, 0, 1]);
    expect((await change(world, [0, 1])).map(value)).toEqual([2, 2]);
    const steps = twoRanks(world, 'expert-major', handles, two, next);
    for (const rank of [0, 1]) value(await test.runtime.synchronize(world.streams[rank]!));
    checkDispatched(world, 'expert-major', steps);
  });
});

it('ends an operation on a member that lost another rank at once, names that one, and goes on without both', async () => {
  await inGroup(
    async (world, test) => {
      const { runtime } = test;
      const handles = world.handles('expert-major');
      expect((await change(world, [0, 2])).map(value)).toEqual([2, 2]);
      ok(runtime, runtime.enqueueBarrier(world.streams[2]!));
      const steps = enqueueAlone(world, handles[0]!, [1, 0, 1]);
      ok(runtime, runtime.abortRank(test.ranks[1]!, 'gone'));
      const record = error(await runtime.synchronize(world.streams[0]!));
      expect(record).toMatchObject({ code: code('ERR_RANK_LOST'), peer: 1 });
      expect(record.detail).toContain('for rank 2, which lost rank 1');
      expect([...world.ep.groupState(world.groups[0]!).observed]).toEqual([0, 0, 1]);
      expect((await change(world, [0])).map(value)).toEqual([3]);
      freeSteps(world, steps);
      const alone = enqueueAlone(world, handles[0]!, [1, 0, 0]);
      value(await runtime.synchronize(world.streams[0]!));
      checkDispatched(world, 'expert-major', alone);
    },
    { timeoutMs: 60_000 },
  );
});

/** One step of rank 0; the others enqueue nothing. */
function enqueueAlone(world: EpWorld, handle: number, active: readonly number[]): readonly RankStep[] {
  const routings = [0, 1, 2].map((rank) => {
    const tokens = rank === 0 ? 2 : 0;
    const ids = Int32Array.from({ length: tokens * 2 }, (_, i) => i % 2);
    return { tokens, ids, weights: Float32Array.from(ids, () => 0.5) };
  });
  return enqueueStep(
    world,
    'expert-major',
    [handle],
    { placement: placementOf(shape), active },
    random(3),
    routings,
  );
}

it('ends what is in flight when members change: open sends and graphs of the old epoch', async () => {
  await inGroup(async (world, test) => {
    const { runtime } = test;
    const handles = world.handles('expert-major');
    const next = random(3);
    const steps = enqueueStep(world, 'expert-major', handles, { placement: placementOf(shape) }, next);
    await world.finish();
    const send = (rank: number) =>
      ok(
        runtime,
        world.ep.enqueueDispatch(
          handles[rank]!,
          world.streams[rank]!,
          dispatchCall(shape, {
            tokens: steps[rank]!.ranges.tokens!,
            topkWeights: steps[rank]!.ranges.topkWeights!,
            outTokens: steps[rank]!.ranges.outTokens!,
            outRows: steps[rank]!.outRows,
            sendOnly: true,
          }),
        ),
      );
    for (const rank of [0, 1]) {
      send(rank);
      ok(runtime, world.ep.enqueueComplete(handles[rank]!, world.streams[rank]!));
      send(rank);
    }
    expect((await change(world, [0, 1])).map(value)).toEqual([2, 2]);
    for (const rank of [0, 1]) {
      expect(error(await runtime.synchronize(world.streams[rank]!)).code).toBe(code('ERR_MEMBERSHIP'));
      refused(runtime, world.ep.enqueueComplete(handles[rank]!, world.streams[rank]!), 'ERR_INVALID_STATE');
    }
    for (let round = 0; round < 6; round++) {
      const two = twoRanks(
        world,
        'expert-major',
        handles,
        { placement: placementOf(shape), active: [1, 1, 0] },
        next,
      );
      for (const rank of [0, 1]) value(await runtime.synchronize(world.streams[rank]!));
      checkDispatched(world, 'expert-major', two);
    }
  });
});
