// SPDX-License-Identifier: Apache-2.0
// Injected faults do what contract/faults.ts says, to host calls and to streams, and end when they are told to.

import { expect, it } from 'vitest';
import {
  bytesOf,
  code,
  error,
  filled,
  inWorld,
  ok,
  refused,
  streamsOf,
  value,
} from '../harness.test-util.js';

it('a delayed rank is late with every operation, also in graphs, and with host calls', async () => {
  await inWorld(2, { workers: 2 }, async (world) => {
    const { runtime, faults, ranks } = world;
    const [stream, other] = streamsOf(world) as [number, number];
    const mark = filled(world, 0, [0]);
    ok(runtime, runtime.beginCapture(stream));
    ok(runtime, runtime.enqueueFill(stream, mark, 0, 1, 1));
    ok(runtime, runtime.enqueueFill(stream, mark, 0, 1, 2));
    const graph = value(runtime.endCapture(stream));
    ok(runtime, faults.delayRank(ranks[0]!, 25));
    const timed = async (work: () => Promise<unknown>): Promise<number> => {
      const start = performance.now();
      await work();
      return performance.now() - start;
    };
    const eager = await timed(async () => {
      ok(runtime, runtime.enqueueFill(stream, mark, 0, 1, 1));
      ok(runtime, runtime.enqueueFill(stream, mark, 0, 1, 1));
      value(await runtime.synchronize(stream));
    });
    expect(eager).toBeGreaterThanOrEqual(49);
    const launched = await timed(async () => {
      ok(runtime, runtime.launchGraph(graph, stream));
      value(await runtime.synchronize(stream));
    });
    expect(launched).toBeGreaterThanOrEqual(49);
    const none = new Uint8Array(0);
    const met = await timed(() => Promise.all(ranks.map((rank) => runtime.exchange(rank, 't', none))));
    expect(met).toBeGreaterThanOrEqual(24);
    ok(runtime, runtime.enqueueBarrier(other));
    ok(runtime, runtime.enqueueBarrier(stream));
    value(await runtime.synchronize(other));
    ok(runtime, faults.delayRank(ranks[0]!, 0));
    value(await runtime.synchronize(stream));
  });
});

it('a stopped rank stands still; its host calls arrive when it is resumed', async () => {
  await inWorld(2, { timeoutMs: 60 }, async (world) => {
    const { runtime, faults, ranks } = world;
    const [stream] = streamsOf(world);
    const mark = filled(world, 0, [0]);
    ok(runtime, faults.stopRank(ranks[0]!));
    ok(runtime, runtime.enqueueFill(stream!, mark, 0, 1, 1));
    const own = runtime.exchange(ranks[0]!, 't', new Uint8Array(0));
    const peer = error(await runtime.exchange(ranks[1]!, 't', new Uint8Array(0)));
    expect(peer).toMatchObject({ code: code('ERR_TIMEOUT'), rank: 1, peer: 0 });
    expect(bytesOf(runtime, mark, 1)[0]).toBe(0);
    ok(runtime, faults.resumeRank(ranks[0]!));
    expect(error(await own)).toMatchObject({ code: code('ERR_TIMEOUT'), rank: 0, peer: 1 });
    await runtime.synchronize(stream!);
  });
});

it('a stopped rank for which the host waits is given up after the deadline, and can be disposed', async () => {
  await inWorld(2, { timeoutMs: 50 }, async (world) => {
    const { runtime, faults, ranks } = world;
    const [stream] = streamsOf(world);
    const event = value(runtime.createEvent(ranks[0]!));
    const mark = filled(world, 0, [0]);
    ok(runtime, runtime.enqueueFill(stream!, mark, 0, 1, 1));
    value(await runtime.synchronize(stream!));
    ok(runtime, faults.stopRank(ranks[0]!));
    ok(runtime, runtime.enqueueFill(stream!, mark, 0, 1, 2));
    ok(runtime, runtime.recordEvent(event, stream!));
    const record = error(await runtime.synchronize(stream!));
    expect(record).toMatchObject({ code: code('ERR_POISONED'), rank: 0 });
    expect(record.detail).toContain('stood still');
    expect(error(await runtime.synchronizeEvent(event)).code).toBe(code('ERR_TIMEOUT'));
    expect(bytesOf(runtime, mark, 1)[0]).toBe(1);
    ok(runtime, runtime.freeBuffer(mark));
  });
});

it('a rank that is stopped while the host waits for it is given up too, unless it is resumed', async () => {
  await inWorld(1, { timeoutMs: 80 }, async (world) => {
    const { runtime, faults, ranks } = world;
    const [stream] = streamsOf(world);
    ok(runtime, faults.stopRank(ranks[0]!));
    ok(runtime, runtime.enqueueBarrier(stream!));
    const first = runtime.synchronize(stream!);
    await new Promise((resolve) => setTimeout(resolve, 20));
    ok(runtime, faults.resumeRank(ranks[0]!));
    value(await first);
    ok(runtime, faults.delayRank(ranks[0]!, 30));
    ok(runtime, runtime.enqueueBarrier(stream!));
    const second = runtime.synchronize(stream!);
    ok(runtime, faults.stopRank(ranks[0]!));
    expect(error(await second).code).toBe(code('ERR_POISONED'));
  });
});

it('a disagreeing rank carries other bytes in one exchange of the topic', async () => {
  await inWorld(2, {}, async ({ runtime, faults, ranks }) => {
    ok(runtime, faults.disagree(ranks[1]!, 'config/'));
    const gather = async (topic: string): Promise<number[][]> => {
      const all = await Promise.all(
        ranks.map((rank, i) => runtime.exchange(rank, topic, Uint8Array.of(i, 5))),
      );
      return value(all[0]!).map((bytes) => [...bytes]);
    };
    expect(await gather('other')).toEqual([
      [0, 5],
      [1, 5],
    ]);
    expect(await gather('config/group')).toEqual([
      [0, 5],
      [254, 250],
    ]);
    expect(await gather('config/group')).toEqual([
      [0, 5],
      [1, 5],
    ]);
  });
});

it('a disagreeing rank can make the registration of windows fail', async () => {
  await inWorld(2, {}, async ({ runtime, faults, ranks }) => {
    const buffers = ranks.map((rank) => value(runtime.allocate(rank, 8, 'symmetric')));
    ok(runtime, faults.disagree(ranks[0]!, 'registerWindow'));
    const outcomes = await Promise.all(ranks.map((rank, i) => runtime.registerWindow(rank, buffers[i]!)));
    for (const outcome of outcomes) expect(error(outcome).code).toBe(code('ERR_DISAGREEMENT'));
  });
});

it('wrong arguments are refused', async () => {
  await inWorld(1, {}, async ({ runtime, faults, ranks }) => {
    for (const delay of [-1, Number.NaN, 1e12])
      refused(runtime, faults.delayRank(ranks[0]!, delay), 'ERR_INVALID_ARGUMENT');
    for (const status of [
      faults.delayRank(0, 1),
      faults.stopRank(0),
      faults.resumeRank(0),
      faults.corruptNextMove(0),
      faults.disagree(0, ''),
    ])
      expect(status).toBe(code('ERR_INVALID_ARGUMENT'));
  });
});
