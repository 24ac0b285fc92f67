// SPDX-License-Identifier: Apache-2.0
// Barriers: any number of workers and ranks, timeouts that name the missing, and what becomes of work behind them.

import { describe, expect, it } from 'vitest';
import {
  bytesOf,
  code,
  error,
  filled,
  inWorld,
  ok,
  openWorld,
  refused,
  streamsOf,
  value,
} from '../harness.test-util.js';

describe('the barrier', () => {
  it.each([
    [1, 16],
    [2, 16],
    [8, 16],
    [1, 2],
  ])('with %i workers holds %i ranks until all have come', async (workers, count) => {
    await inWorld(count, { workers }, async (world) => {
      const { runtime } = world;
      const streams = streamsOf(world);
      const marks = world.ranks.map((_, rank) => filled(world, rank, [0]));
      for (let round = 1; round <= 20; round++)
        for (const [rank, stream] of streams.entries()) {
          ok(runtime, runtime.enqueueFill(stream, marks[rank]!, 0, 1, round));
          ok(runtime, runtime.enqueueBarrier(stream));
        }
      for (const [rank, stream] of streams.entries()) {
        value(await runtime.synchronize(stream));
        expect(bytesOf(runtime, marks[rank]!, 1)[0]).toBe(20);
      }
    });
  });

  it('does not let anybody through early', async () => {
    await inWorld(3, { workers: 2 }, async (world) => {
      const { runtime, faults, ranks } = world;
      const streams = streamsOf(world);
      const flag = filled(world, 0, [0]);
      ok(runtime, faults.stopRank(ranks[2]!));
      for (const stream of streams) ok(runtime, runtime.enqueueBarrier(stream));
      ok(runtime, runtime.enqueueFill(streams[0]!, flag, 0, 1, 1));
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(bytesOf(runtime, flag, 1)[0]).toBe(0);
      ok(runtime, faults.resumeRank(ranks[2]!));
      for (const stream of streams) value(await runtime.synchronize(stream));
      expect(bytesOf(runtime, flag, 1)[0]).toBe(1);
    });
  });

  it('times out naming the missing ranks, poisons who waited, and leaves other worlds alone', async () => {
    const other = await openWorld(2);
    await inWorld(4, { timeoutMs: 50 }, async (world) => {
      const { runtime, ranks } = world;
      const streams = streamsOf(world);
      ok(runtime, runtime.enqueueBarrier(streams[0]!));
      ok(runtime, runtime.enqueueBarrier(streams[2]!));
      const outcomes = await Promise.all([0, 2].map((rank) => runtime.synchronize(streams[rank]!)));
      for (const [i, outcome] of outcomes.entries()) {
        expect(error(outcome)).toMatchObject({
          code: code('ERR_TIMEOUT'),
          rank: 2 * i,
          peer: 1,
          expected: 1n,
          seen: 0n,
        });
        expect(error(outcome).detail).toContain('ranks 1, 3');
      }
      // Handed out once; from now on calls are refused.
      value(await runtime.synchronize(streams[0]!));
      const refusal = refused(runtime, runtime.enqueueBarrier(streams[0]!), 'ERR_POISONED');
      expect(refusal.detail).toContain('ranks 1, 3');
      expect(runtime.poisonOf(ranks[1]!)).toBeUndefined();
    });
    const streams = streamsOf(other);
    for (const stream of streams) ok(other.runtime, other.runtime.enqueueBarrier(stream));
    for (const stream of streams) value(await other.runtime.synchronize(stream));
    await other.close();
    await inWorld(4, { timeoutMs: 5000 }, async (world) => {
      const streamsAgain = streamsOf(world);
      for (const stream of streamsAgain) ok(world.runtime, world.runtime.enqueueBarrier(stream));
      for (const stream of streamsAgain) value(await world.runtime.synchronize(stream));
    });
  });

  it('drains what was queued behind a timeout, on every stream of the rank, and reports it', async () => {
    await inWorld(2, { timeoutMs: 50, workers: 1 }, async (world) => {
      const { runtime, ranks } = world;
      const [first] = streamsOf(world);
      const second = value(runtime.createStream(ranks[0]!));
      const event = value(runtime.createEvent(ranks[0]!));
      const mark = filled(world, 0, [0]);
      const down = Uint8Array.of(7);
      ok(runtime, runtime.enqueueBarrier(first!));
      ok(runtime, runtime.recordEvent(event, first!));
      ok(runtime, runtime.enqueueDownload(first!, down, mark, 0));
      ok(runtime, runtime.waitEvent(second, event));
      ok(runtime, runtime.enqueueFill(second, mark, 0, 1, 1));
      expect(error(await runtime.synchronize(first!)).code).toBe(code('ERR_TIMEOUT'));
      const skipped = error(await runtime.synchronize(second));
      expect(skipped.code).toBe(code('ERR_POISONED'));
      expect(skipped.detail).toContain('rank 1');
      expect(error(await runtime.synchronizeEvent(event)).code).toBe(code('ERR_TIMEOUT'));
      expect([bytesOf(runtime, mark, 1)[0], down[0]]).toEqual([0, 7]);
    });
  });
});
