// SPDX-License-Identifier: Apache-2.0
// A member that stops: with a mask the others agree on who is left and go on, and it comes back; without, ranks are poisoned.

import { describe, expect, it } from 'vitest';
import { code, error, refused, type TestWorld, value } from '../harness.test-util.js';
import { checkDispatched, dispatchCall, enqueueStep, type RankStep } from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random } from './ep-data.test-util.js';
import { change, inGroup, mask, shape, timeoutMs, twoRanks } from './ep-members.test-util.js';
import { type EpWorld, placementOf } from './ep-world.test-util.js';

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
