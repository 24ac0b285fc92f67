// SPDX-License-Identifier: Apache-2.0
// Members change only together; tokens go to replicas that are left, and what was in flight ends.

import { expect, it } from 'vitest';
import { code, error, ok, refused, value } from '../harness.test-util.js';
import { checkDispatched, dispatchCall, enqueueStep } from './ep-calls.test-util.js';
import { random } from './ep-data.test-util.js';
import { change, inGroup, mask, shape, twoRanks } from './ep-members.test-util.js';
import { placementOf } from './ep-world.test-util.js';

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
