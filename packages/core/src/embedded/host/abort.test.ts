// SPDX-License-Identifier: Apache-2.0
// An abort ends every wait of the rank and tells its peers.

import { describe, expect, it } from 'vitest';
import {
  code,
  error,
  filled,
  inWorld,
  ok,
  prepareAll,
  refused,
  streamsOf,
  type TestWorld,
  value,
} from '../harness.test-util.js';

describe('abort', () => {
  async function waiting(
    body: (world: TestWorld, streams: readonly number[]) => Promise<void>,
  ): Promise<void> {
    await inWorld(2, { timeoutMs: 60_000 }, async (world) => {
      const streams = streamsOf(world);
      await body(world, streams);
    });
  }

  it('ends waits of the rank on streams, with the reason', async () => {
    await waiting(async ({ runtime, ranks }, streams) => {
      ok(runtime, runtime.enqueueBarrier(streams[0]!));
      ok(runtime, runtime.enqueueBarrier(streams[0]!));
      const done = runtime.synchronize(streams[0]!);
      ok(runtime, runtime.abortRank(ranks[0]!, 'the user said so'));
      const record = error(await done);
      expect(record).toMatchObject({ code: code('ERR_ABORTED'), rank: 0, op: 'barrier' });
      expect(record.detail).toContain('the user said so');
      expect(runtime.poisonOf(ranks[0]!)?.code).toBe(code('ERR_ABORTED'));
      refused(runtime, runtime.enqueueBarrier(streams[0]!), 'ERR_POISONED');
    });
  });

  it('ends host calls of the rank and of those who wait for it', async () => {
    await waiting(async ({ runtime, ranks }) => {
      const own = runtime.exchange(ranks[0]!, 't', new Uint8Array(0));
      ok(runtime, runtime.abortRank(ranks[0]!, 'enough'));
      expect(error(await own).code).toBe(code('ERR_ABORTED'));
      const late = error(await runtime.exchange(ranks[1]!, 't', new Uint8Array(0)));
      expect(late).toMatchObject({ code: code('ERR_RANK_LOST'), rank: 1, peer: 0 });
    });
    await waiting(async ({ runtime, ranks }) => {
      const other = runtime.exchange(ranks[1]!, 't', new Uint8Array(0));
      ok(runtime, runtime.abortRank(ranks[0]!, 'enough'));
      expect(error(await other)).toMatchObject({ code: code('ERR_RANK_LOST'), peer: 0 });
    });
  });

  it('tells peers on streams that the rank is lost', async () => {
    await waiting(async ({ runtime, ranks }, streams) => {
      ok(runtime, runtime.enqueueBarrier(streams[1]!));
      ok(runtime, runtime.abortRank(ranks[0]!, 'enough'));
      expect(error(await runtime.synchronize(streams[1]!))).toMatchObject({
        code: code('ERR_RANK_LOST'),
        peer: 0,
      });
    });
  });

  it('reaches ranks that wait for one that waits for it, and they name the lost one', async () => {
    await inWorld(3, { timeoutMs: 60_000, workers: 3 }, async (world) => {
      const { runtime, m2n, ranks } = world;
      const streams = streamsOf(world);
      const buffers = ranks.map((_, rank) => filled(world, rank, new Uint8Array(64)));
      const moves = [
        { from: 0, to: 2, inner: 32 },
        { from: 1, to: 2, inner: 32, destination: 32 },
      ];
      const transfers = (
        await prepareAll(world, moves, [[buffers[0]!], [buffers[1]!], [0]], [[0], [0], [buffers[2]!]])
      ).map(value);
      // Rank 2 waits for rank 1 in the first execution, rank 0 for rank 2 in the second.
      for (const rank of [0, 2, 0, 2]) ok(runtime, m2n.enqueueTransfer(transfers[rank]!, streams[rank]!));
      const waits = [0, 2].map((rank) => runtime.synchronize(streams[rank]!));
      await new Promise((resolve) => setTimeout(resolve, 20));
      ok(runtime, runtime.abortRank(ranks[1]!, 'enough'));
      const began = performance.now();
      const [first, second] = (await Promise.all(waits)).map(error);
      expect(second).toMatchObject({ code: code('ERR_RANK_LOST'), rank: 2, peer: 1 });
      expect(first).toMatchObject({ code: code('ERR_RANK_LOST'), rank: 0, peer: 1 });
      expect(first!.detail).toContain('for rank 2, which lost rank 1');
      expect(performance.now() - began).toBeLessThan(30_000);
    });
  });

  it('lets no record that it drained pass for work done, however late the peer waits', async () => {
    await waiting(async ({ runtime, ranks }, streams) => {
      const [done, drained] = [value(runtime.createEvent(ranks[0]!)), value(runtime.createEvent(ranks[0]!))];
      ok(runtime, runtime.recordEvent(done, streams[0]!));
      expect(await runtime.synchronize(streams[0]!)).toMatchObject({ ok: true });
      ok(runtime, runtime.enqueueBarrier(streams[0]!));
      ok(runtime, runtime.recordEvent(drained, streams[0]!));
      ok(runtime, runtime.abortRank(ranks[0]!, 'enough'));
      expect(error(await runtime.synchronize(streams[0]!)).code).toBe(code('ERR_ABORTED'));
      ok(runtime, runtime.waitEvent(streams[1]!, done));
      expect(await runtime.synchronize(streams[1]!)).toMatchObject({ ok: true });
      ok(runtime, runtime.waitEvent(streams[1]!, drained));
      expect(error(await runtime.synchronize(streams[1]!))).toMatchObject({
        code: code('ERR_RANK_LOST'),
        op: 'wait',
        rank: 1,
        peer: 0,
      });
    });
  });

  it('reaches ranks that wait for a record of one that lost it', async () => {
    await inWorld(3, { timeoutMs: 60_000 }, async (world) => {
      const { runtime, ranks } = world;
      const streams = streamsOf(world);
      const [lost, passedOn] = [0, 1].map((rank) => value(runtime.createEvent(ranks[rank]!)));
      ok(runtime, runtime.enqueueBarrier(streams[0]!));
      ok(runtime, runtime.recordEvent(lost!, streams[0]!));
      ok(runtime, runtime.waitEvent(streams[1]!, lost!));
      ok(runtime, runtime.recordEvent(passedOn!, streams[1]!));
      ok(runtime, runtime.waitEvent(streams[2]!, passedOn!));
      ok(runtime, runtime.abortRank(ranks[0]!, 'enough'));
      const record = error(await runtime.synchronize(streams[2]!));
      expect(record).toMatchObject({ code: code('ERR_RANK_LOST'), op: 'wait', rank: 2, peer: 0 });
      expect(record.detail).toContain('for rank 1, which lost rank 0');
    });
  });

  it('frees a stopped rank from standing still', async () => {
    await waiting(async ({ runtime, ranks, faults }, streams) => {
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.enqueueBarrier(streams[0]!));
      const call = runtime.exchange(ranks[0]!, 't', new Uint8Array(0));
      ok(runtime, runtime.abortRank(ranks[0]!, 'enough'));
      expect(error(await runtime.synchronize(streams[0]!)).code).toBe(code('ERR_ABORTED'));
      expect(error(await call).code).toBe(code('ERR_ABORTED'));
    });
  });
});
