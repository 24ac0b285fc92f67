// SPDX-License-Identifier: Apache-2.0
// Events: which record a wait is for, across streams and ranks, in graphs, and every error of their calls.

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

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

describe('waiting', () => {
  it('is for the latest record before the call, on another rank too', async () => {
    await inWorld(2, { workers: 2 }, async (world) => {
      const { runtime, ranks, faults } = world;
      const [first, second] = streamsOf(world) as [number, number];
      const event = value(runtime.createEvent(ranks[0]!));
      const mark = filled(world, 1, [0]);
      ok(runtime, runtime.recordEvent(event, first));
      value(await runtime.synchronize(first));
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.waitEvent(second, event));
      ok(runtime, runtime.recordEvent(event, first));
      ok(runtime, runtime.enqueueFill(second, mark, 0, 1, 1));
      // Bound to the first record, which was reached.
      value(await runtime.synchronize(second));
      ok(runtime, runtime.waitEvent(second, event));
      ok(runtime, runtime.enqueueFill(second, mark, 0, 1, 2));
      await pause(20);
      expect(bytesOf(runtime, mark, 1)[0]).toBe(1);
      expect(value(runtime.queryEvent(event))).toBe(false);
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(second));
      expect(bytesOf(runtime, mark, 1)[0]).toBe(2);
      expect(value(runtime.queryEvent(event))).toBe(true);
    });
  });

  it('is not ended by a later record that is reached earlier', async () => {
    await inWorld(2, { workers: 2 }, async (world) => {
      const { runtime, ranks } = world;
      const [slow, waiter] = streamsOf(world) as [number, number];
      const fast = value(runtime.createStream(ranks[0]!));
      const event = value(runtime.createEvent(ranks[0]!));
      const mark = filled(world, 1, [0]);
      ok(runtime, runtime.enqueueBarrier(slow));
      ok(runtime, runtime.recordEvent(event, slow));
      ok(runtime, runtime.waitEvent(waiter, event));
      ok(runtime, runtime.enqueueFill(waiter, mark, 0, 1, 1));
      ok(runtime, runtime.recordEvent(event, fast));
      value(await runtime.synchronize(fast));
      await pause(20);
      expect(bytesOf(runtime, mark, 1)[0]).toBe(0);
      const partner = value(runtime.createStream(ranks[1]!));
      ok(runtime, runtime.enqueueBarrier(partner));
      value(await runtime.synchronize(waiter));
      expect(bytesOf(runtime, mark, 1)[0]).toBe(1);
    });
  });

  it('for an event never recorded is no wait', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks } = world;
      const [stream] = streamsOf(world);
      const event = value(runtime.createEvent(ranks[0]!));
      ok(runtime, runtime.waitEvent(stream!, event));
      value(await runtime.synchronize(stream!));
      value(await runtime.synchronizeEvent(event));
      expect(value(runtime.queryEvent(event))).toBe(true);
    });
  });

  it('for a rank that stands still times out and names it', async () => {
    await inWorld(2, { timeoutMs: 50 }, async (world) => {
      const { runtime, ranks, faults } = world;
      const [first, second] = streamsOf(world) as [number, number];
      const event = value(runtime.createEvent(ranks[0]!));
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.recordEvent(event, first));
      ok(runtime, runtime.waitEvent(second, event));
      expect(error(await runtime.synchronize(second))).toMatchObject({
        code: code('ERR_TIMEOUT'),
        op: 'wait',
        peer: 0,
      });
    });
  });

  it('for a disposed rank ends: what it had recorded is reached', async () => {
    const world = await openWorld(2, { timeoutMs: 60_000 });
    const { runtime, ranks } = world;
    const [first, second] = streamsOf(world) as [number, number];
    const event = value(runtime.createEvent(ranks[0]!));
    ok(runtime, runtime.enqueueBarrier(first));
    ok(runtime, runtime.recordEvent(event, first));
    ok(runtime, runtime.waitEvent(second, event));
    ok(runtime, runtime.abortRank(ranks[0]!, 'gone'));
    value(await runtime.disposeRank(ranks[0]!));
    await runtime.synchronize(second);
    expect(runtime.queued(second)).toBe(0);
    await world.close();
  });

  it('works with one event recorded 256 times in a queue', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks, faults } = world;
      const [stream] = streamsOf(world);
      const event = value(runtime.createEvent(ranks[0]!));
      ok(runtime, faults.stopRank(ranks[0]!));
      for (let i = 0; i < 256; i++) ok(runtime, runtime.recordEvent(event, stream!));
      const done = runtime.synchronizeEvent(event);
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await done);
    });
  });

  it('refuses a 65th unreached record when another stream still owes the first', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks, faults } = world;
      const [a, b] = [0, 1].map(() => value(runtime.createStream(ranks[0]!))) as [number, number];
      const event = value(runtime.createEvent(ranks[0]!));
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.recordEvent(event, a));
      for (let i = 0; i < 63; i++) ok(runtime, runtime.recordEvent(event, b));
      refused(runtime, runtime.recordEvent(event, b), 'ERR_QUEUE_FULL');
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(a));
      ok(runtime, runtime.recordEvent(event, b));
      value(await runtime.synchronizeEvent(event));
    });
  });
});

describe('time', () => {
  it('passes between records by one clock for all workers', async () => {
    await inWorld(1, { workers: 2 }, async (world) => {
      const { runtime, ranks, faults } = world;
      const [stream] = streamsOf(world);
      const [start, end] = [0, 1].map(() => value(runtime.createEvent(ranks[0]!))) as [number, number];
      ok(runtime, runtime.recordEvent(start, stream!));
      value(await runtime.synchronize(stream!));
      ok(runtime, faults.delayRank(ranks[0]!, 30));
      ok(runtime, runtime.recordEvent(end, stream!));
      value(await runtime.synchronize(stream!));
      const passed = value(runtime.elapsedMs(start, end));
      expect(passed).toBeGreaterThanOrEqual(30);
      expect(passed).toBeLessThan(5000);
      expect(value(runtime.elapsedMs(end, start))).toBe(-passed);
    });
  });

  it('is unknown before a record is reached', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks, faults } = world;
      const [stream] = streamsOf(world);
      const [a, b] = [0, 1].map(() => value(runtime.createEvent(ranks[0]!))) as [number, number];
      expect(error(runtime.elapsedMs(a, b))).toMatchObject({ code: code('ERR_INVALID_STATE') });
      ok(runtime, runtime.recordEvent(a, stream!));
      value(await runtime.synchronize(stream!));
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.recordEvent(b, stream!));
      expect(error(runtime.elapsedMs(a, b)).detail).toContain('not been reached');
      ok(runtime, faults.resumeRank(ranks[0]!));
    });
  });
});

describe('errors', () => {
  it('of handles, owners and worlds', async () => {
    const other = await openWorld(1);
    await inWorld(2, { backend: other.backend }, async (world) => {
      const { runtime, ranks } = world;
      const [first, second] = streamsOf(world) as [number, number];
      const [elsewhere] = streamsOf(other);
      const event = value(runtime.createEvent(ranks[0]!));
      expect(refused(runtime, runtime.recordEvent(event, second), 'ERR_FOREIGN_OBJECT').peer).toBe(0);
      refused(runtime, runtime.waitEvent(elsewhere!, event), 'ERR_FOREIGN_OBJECT');
      refused(runtime, runtime.recordEvent(first, first), 'ERR_INVALID_ARGUMENT');
      ok(runtime, runtime.freeEvent(event));
      refused(runtime, runtime.freeEvent(event), 'ERR_DISPOSED');
      refused(runtime, runtime.recordEvent(event, first), 'ERR_DISPOSED');
      refused(runtime, runtime.waitEvent(first, event), 'ERR_DISPOSED');
      expect(error(runtime.queryEvent(event)).code).toBe(code('ERR_DISPOSED'));
      expect(error(await runtime.synchronizeEvent(event)).code).toBe(code('ERR_DISPOSED'));
    });
  });

  it('do not come from freeing an event that queued work still needs', async () => {
    await inWorld(2, {}, async (world) => {
      const { runtime, ranks, faults } = world;
      const [first, second] = streamsOf(world) as [number, number];
      const event = value(runtime.createEvent(ranks[0]!));
      const mark = filled(world, 1, [0]);
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.recordEvent(event, first));
      ok(runtime, runtime.waitEvent(second, event));
      ok(runtime, runtime.enqueueFill(second, mark, 0, 1, 1));
      ok(runtime, runtime.freeEvent(event));
      // Events made meanwhile must not take over its cell.
      for (let i = 0; i < 20; i++) value(runtime.createEvent(ranks[0]!));
      await pause(20);
      expect(bytesOf(runtime, mark, 1)[0]).toBe(0);
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(second));
      expect(bytesOf(runtime, mark, 1)[0]).toBe(1);
    });
  });
});
