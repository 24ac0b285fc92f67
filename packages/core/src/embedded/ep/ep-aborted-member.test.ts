// SPDX-License-Identifier: Apache-2.0
// A member that aborted, or lost another rank, ends an operation at once and by name, and the others go on.

import { expect, it } from 'vitest';
import { code, error, ok, value } from '../harness.test-util.js';
import { checkDispatched, enqueueStep, freeSteps, type RankStep } from './ep-calls.test-util.js';
import { random } from './ep-data.test-util.js';
import { change, inGroup, shape, twoRanks } from './ep-members.test-util.js';
import { type EpWorld, placementOf } from './ep-world.test-util.js';

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
