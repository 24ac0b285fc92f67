// SPDX-License-Identifier: Apache-2.0
// Streams: order, the limit of 256 operations, synchronize, and every error of their calls and of copies, fills and uploads.

import { describe, expect, it } from 'vitest';
import { maxQueuedOperations } from '../../contract/index.js';
import {
  bytesOf,
  code,
  error,
  inWorld,
  ok,
  refused,
  streamsOf,
  type TestWorld,
  value,
} from '../harness.test-util.js';

function buffersOf({ runtime, ranks }: TestWorld, rank: number, count: number, bytes: number): number[] {
  return Array.from({ length: count }, () => value(runtime.allocate(ranks[rank]!, bytes, 'plain')));
}

describe('work', () => {
  it('runs in order and asynchronously', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks, faults } = world;
      const [stream] = streamsOf(world);
      const [a, b] = buffersOf(world, 0, 2, 1000) as [number, number];
      ok(runtime, faults.stopRank(ranks[0]!));
      const up = Uint8Array.from({ length: 1000 }, (_, i) => i & 255);
      const down = new Uint8Array(1000);
      ok(runtime, runtime.enqueueFill(stream!, a, 0, 1000, 9));
      ok(runtime, runtime.enqueueUpload(stream!, a, 0, up));
      ok(runtime, runtime.enqueueCopy(stream!, b, 1, a, 0, 999));
      ok(runtime, runtime.enqueueFill(stream!, b, 0, 1, 77));
      ok(runtime, runtime.enqueueDownload(stream!, down, b, 0));
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(runtime.queued(stream!)).toBe(5);
      expect(down[0]).toBe(0);
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(stream!));
      expect(runtime.queued(stream!)).toBe(0);
      expect(down).toEqual(Uint8Array.from([77, ...up.subarray(0, 999)]));
    });
  });

  it('of many mebibytes is done in steps, in full', async () => {
    await inWorld(1, { workers: 2 }, async (world) => {
      const { runtime } = world;
      const [stream] = streamsOf(world);
      const bytes = 33 * 2 ** 20 + 13;
      const [a, b] = buffersOf(world, 0, 2, bytes) as [number, number];
      ok(runtime, runtime.enqueueFill(stream!, a, 0, bytes, 171));
      ok(runtime, runtime.enqueueFill(stream!, b, 0, bytes, 1));
      ok(runtime, runtime.enqueueCopy(stream!, b, 5, a, 0, bytes - 7));
      value(await runtime.synchronize(stream!));
      const got = bytesOf(runtime, b, bytes);
      expect([got[4], got[5], got[bytes - 3], got[bytes - 2]]).toEqual([1, 171, 171, 1]);
      expect(got.indexOf(1, 5)).toBe(bytes - 2);
    });
  });
});

describe('the queue', () => {
  it('holds 256 operations, refuses the next, and is usable again', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks, faults } = world;
      const [stream] = streamsOf(world);
      const [buffer] = buffersOf(world, 0, 1, 16);
      const event = value(runtime.createEvent(ranks[0]!));
      for (let round = 0; round < 3; round++) {
        ok(runtime, faults.stopRank(ranks[0]!));
        for (let i = 0; i < maxQueuedOperations; i++)
          ok(runtime, runtime.enqueueFill(stream!, buffer!, 0, 16, i & 255));
        expect(
          refused(runtime, runtime.enqueueFill(stream!, buffer!, 0, 16, 1), 'ERR_QUEUE_FULL').expected,
        ).toBe(256);
        for (const status of [
          runtime.enqueueCopy(stream!, buffer!, 0, buffer!, 8, 8),
          runtime.enqueueUpload(stream!, buffer!, 0, new Uint8Array(4)),
          runtime.enqueueDownload(stream!, new Uint8Array(4), buffer!, 0),
          runtime.enqueueBarrier(stream!),
          runtime.recordEvent(event, stream!),
          runtime.waitEvent(stream!, event),
        ])
          refused(runtime, status, 'ERR_QUEUE_FULL');
        expect(runtime.queued(stream!)).toBe(256);
        ok(runtime, faults.resumeRank(ranks[0]!));
        value(await runtime.synchronize(stream!));
        expect(bytesOf(runtime, buffer!, 1)[0]).toBe(255);
      }
    });
  });

  it('counts nothing while a graph is recorded, and one launch as one', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks, faults } = world;
      const [stream] = streamsOf(world);
      const [buffer] = buffersOf(world, 0, 1, 16);
      ok(runtime, runtime.beginCapture(stream!));
      for (let i = 0; i < 1000; i++) ok(runtime, runtime.enqueueFill(stream!, buffer!, 0, 16, 3));
      expect(runtime.queued(stream!)).toBe(0);
      const graph = value(runtime.endCapture(stream!));
      ok(runtime, faults.stopRank(ranks[0]!));
      for (let i = 0; i < maxQueuedOperations; i++) ok(runtime, runtime.launchGraph(graph, stream!));
      expect(runtime.queued(stream!)).toBe(256);
      refused(runtime, runtime.launchGraph(graph, stream!), 'ERR_QUEUE_FULL');
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(stream!));
    });
  });

  it('counts 2^32 operations and more without a mistake', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime } = world;
      const [stream] = streamsOf(world);
      const [buffer] = buffersOf(world, 0, 1, 4);
      for (let i = 0; i < 2000; i++) {
        ok(runtime, runtime.enqueueFill(stream!, buffer!, 0, 4, i & 255));
        if (i % 200 === 199) value(await runtime.synchronize(stream!));
      }
      expect(bytesOf(runtime, buffer!, 1)[0]).toBe(1999 & 255);
    });
  });
});

describe('synchronize', () => {
  it('waits for what was enqueued before it, not for what follows', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks } = world;
      const [stream] = streamsOf(world);
      const [other] = streamsOf(world);
      const gate = value(runtime.createEvent(ranks[0]!));
      const [buffer] = buffersOf(world, 0, 1, 8);
      ok(runtime, runtime.beginCapture(other!));
      value(runtime.endCapture(other!));
      ok(runtime, runtime.enqueueFill(stream!, buffer!, 0, 8, 1));
      const early = runtime.synchronize(stream!);
      ok(runtime, runtime.enqueueFill(stream!, buffer!, 0, 8, 2));
      ok(runtime, runtime.recordEvent(gate, stream!));
      value(await early);
      value(await runtime.synchronizeEvent(gate));
      expect(bytesOf(runtime, buffer!, 1)[0]).toBe(2);
    });
  });

  it('ends although the stream is freed as soon as it is idle', async () => {
    await inWorld(2, { timeoutMs: 20 }, async (world) => {
      const { runtime } = world;
      const [stream, other] = streamsOf(world) as [number, number];
      ok(runtime, runtime.enqueueBarrier(stream));
      const first = runtime.synchronize(stream);
      while (runtime.queued(stream) > 0);
      ok(runtime, runtime.freeStream(stream));
      expect(error(await first).code).toBe(code('ERR_TIMEOUT'));
      value(await runtime.synchronize(other));
    });
  });

  it('gives an error to the first of several callers', async () => {
    await inWorld(2, { timeoutMs: 20 }, async (world) => {
      const { runtime } = world;
      const [stream] = streamsOf(world);
      ok(runtime, runtime.enqueueBarrier(stream!));
      const first = runtime.synchronize(stream!);
      while (runtime.queued(stream!) > 0);
      const second = runtime.synchronize(stream!);
      expect((await Promise.all([first, second])).map((outcome) => outcome.ok)).toEqual([false, true]);
    });
  });

  it('serves many callers at once, in any order of targets', async () => {
    await inWorld(2, { workers: 2 }, async (world) => {
      const { runtime } = world;
      const streams = streamsOf(world);
      const [buffer] = buffersOf(world, 0, 1, 8);
      const all: Promise<unknown>[] = [];
      for (let i = 0; i < 200; i++) {
        ok(runtime, runtime.enqueueFill(streams[0]!, buffer!, 0, 8, i & 255));
        all.push(runtime.synchronize(streams[0]!).then(value));
      }
      await Promise.all(all);
      expect(runtime.queued(streams[0]!)).toBe(0);
    });
  });
});

describe('errors', () => {
  it('name ranges outside of a buffer', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime } = world;
      const [stream] = streamsOf(world);
      const [a, b] = buffersOf(world, 0, 2, 100) as [number, number];
      const outside = [
        () => runtime.enqueueCopy(stream!, a, 50, b, 0, 51),
        () => runtime.enqueueCopy(stream!, a, 0, b, 50, 51),
        () => runtime.enqueueFill(stream!, a, 101, 0, 0),
        () => runtime.enqueueUpload(stream!, a, 99, new Uint8Array(2)),
        () => runtime.enqueueDownload(stream!, new Uint8Array(2), a, 99),
      ];
      for (const call of outside)
        expect(refused(runtime, call(), 'ERR_OUT_OF_BOUNDS').detail).toContain('100 bytes');
      for (const call of [
        () => runtime.enqueueCopy(stream!, a, -1, b, 0, 1),
        () => runtime.enqueueCopy(stream!, a, 0, b, 0.5, 1),
        () => runtime.enqueueFill(stream!, a, 0, Number.NaN, 0),
        () => runtime.enqueueFill(stream!, a, 0, 1, 256),
        () => runtime.enqueueFill(stream!, a, 0, 1, -1),
      ])
        refused(runtime, call(), 'ERR_INVALID_ARGUMENT');
      refused(runtime, runtime.enqueueCopy(stream!, a, 0, a, 9, 10), 'ERR_OVERLAP');
      ok(runtime, runtime.enqueueCopy(stream!, a, 0, a, 10, 10));
      value(await runtime.synchronize(stream!));
    });
  });

  it('tell objects of other ranks and worlds', async () => {
    await inWorld(2, {}, async (world) => {
      const { runtime } = world;
      const [first] = streamsOf(world);
      const [own] = buffersOf(world, 0, 1, 8);
      const [foreign] = buffersOf(world, 1, 1, 8);
      for (const status of [
        runtime.enqueueCopy(first!, own!, 0, foreign!, 0, 8),
        runtime.enqueueCopy(first!, foreign!, 0, own!, 0, 8),
        runtime.enqueueFill(first!, foreign!, 0, 8, 0),
        runtime.enqueueUpload(first!, foreign!, 0, new Uint8Array(8)),
        runtime.enqueueDownload(first!, new Uint8Array(8), foreign!, 0),
      ])
        expect(refused(runtime, status, 'ERR_FOREIGN_OBJECT').peer).toBe(1);
    });
  });

  it('refuse freed streams, and freeing busy ones', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks, faults } = world;
      const [stream] = streamsOf(world);
      const [buffer] = buffersOf(world, 0, 1, 8);
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.enqueueFill(stream!, buffer!, 0, 8, 1));
      refused(runtime, runtime.freeStream(stream!), 'ERR_BUSY');
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(stream!));
      ok(runtime, runtime.beginCapture(stream!));
      refused(runtime, runtime.freeStream(stream!), 'ERR_INVALID_STATE');
      expect(error(await runtime.synchronize(stream!)).code).toBe(code('ERR_INVALID_STATE'));
      value(runtime.endCapture(stream!));
      ok(runtime, runtime.freeStream(stream!));
      refused(runtime, runtime.freeStream(stream!), 'ERR_DISPOSED');
      refused(runtime, runtime.enqueueFill(stream!, buffer!, 0, 8, 1), 'ERR_DISPOSED');
      expect(error(await runtime.synchronize(stream!)).code).toBe(code('ERR_DISPOSED'));
      expect(runtime.queued(stream!)).toBe(0);
    });
  });

  it('end at 4096 streams', async () => {
    await inWorld(1, {}, async ({ runtime, ranks }) => {
      for (let i = 0; i < 4096; i++) value(runtime.createStream(ranks[0]!));
      expect(error(runtime.createStream(ranks[0]!)).code).toBe(code('ERR_OUT_OF_MEMORY'));
    });
  });
});
