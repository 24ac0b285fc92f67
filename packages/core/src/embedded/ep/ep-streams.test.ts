// SPDX-License-Identifier: Apache-2.0
// Operations on several streams of a rank run whatever they wait for, up to as many calls as a rank may have.

import { expect, it } from 'vitest';
import { absentRange } from '../../contract/index.js';
import { ok, refused, value } from '../harness.test-util.js';
import { checkDispatched, routeCall } from './ep-calls.test-util.js';
import { inGroup, poison, resend, routed } from './ep-contexts.test-util.js';
import { random } from './ep-data.test-util.js';

it('runs operations of two streams of a rank, whatever they wait for', async () => {
  await inGroup(2, async (world, test) => {
    const { runtime } = test;
    const next = random(4);
    const others = test.ranks.map((rank) => value(runtime.createStream(rank)));
    const [first, second] = [world.handles('rank-major'), world.handles('rank-major')];
    const a = await routed(world, 'rank-major', first, next);
    const b = await routed(world, 'rank-major', second, next);
    for (let round = 0; round < 30; round++) {
      poison(world, a);
      poison(world, b);
      if (round % 10 === 0) test.faults.delayRank(test.ranks[round % 3]!, 3);
      world.streams.forEach((_, rank) => {
        for (let i = 0; i < 3; i++) {
          ok(runtime, resend(world, first[rank]!, rank, a[rank]!, false));
          ok(runtime, resend(world, second[rank]!, rank, b[rank]!, false, others[rank]!));
        }
      });
      for (const stream of others) value(await runtime.synchronize(stream));
      await world.finish();
      checkDispatched(world, 'rank-major', a);
      checkDispatched(world, 'rank-major', b);
      for (const rank of test.ranks) test.faults.delayRank(rank, 0);
    }
  });
});

it('takes 1024 calls of a rank, and refuses one more', async () => {
  await inGroup(2, async (world, test) => {
    const { runtime } = test;
    const handle = world.handle(0, 'rank-major');
    test.faults.stopRank(test.ranks[0]!);
    const streams = [0, 1, 2, 3, 4].map(() => value(runtime.createStream(test.ranks[0]!)));
    const call = routeCall({ tokens: 0, topkIdx: { ...absentRange, entryBytes: 4 } });
    for (let i = 0; i < 1024; i++)
      ok(runtime, world.ep.enqueueRoute(handle, streams[Math.floor(i / 256)]!, call));
    expect(
      refused(runtime, world.ep.enqueueRoute(handle, streams[4]!, call), 'ERR_QUEUE_FULL').detail,
    ).toContain('1024');
    expect(
      refused(runtime, world.ep.enqueueRoute(handle, streams[3]!, call), 'ERR_QUEUE_FULL').detail,
    ).toContain('256');
    test.faults.resumeRank(test.ranks[0]!);
    for (const stream of streams) value(await runtime.synchronize(stream));
    ok(runtime, world.ep.enqueueRoute(handle, streams[4]!, call));
    value(await runtime.synchronize(streams[4]!));
  });
});
