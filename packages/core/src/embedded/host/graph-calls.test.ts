// SPDX-License-Identifier: Apache-2.0
// Graphs: replay, events inside, several streams, disposal, and every misuse of capture.

import { describe, expect, it } from 'vitest';
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

describe('replay', () => {
  it('repeats copies, uploads and downloads with the arrays as they are at each launch', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime } = world;
      const [stream] = streamsOf(world);
      const [a, b] = [filled(world, 0, new Uint8Array(8)), filled(world, 0, new Uint8Array(8))];
      const [up, down] = [new Uint8Array(8), new Uint8Array(8)];
      ok(runtime, runtime.beginCapture(stream!));
      ok(runtime, runtime.enqueueUpload(stream!, a, 0, up));
      ok(runtime, runtime.enqueueCopy(stream!, b, 0, a, 0, 8));
      ok(runtime, runtime.enqueueFill(stream!, b, 7, 1, 99));
      ok(runtime, runtime.enqueueDownload(stream!, down, b, 0));
      const graph = value(runtime.endCapture(stream!));
      expect(bytesOf(runtime, b, 8)[7]).toBe(0);
      for (let round = 1; round <= 20; round++) {
        up.fill(round);
        ok(runtime, runtime.launchGraph(graph, stream!));
        value(await runtime.synchronize(stream!));
        expect([...down]).toEqual([...new Array(7).fill(round), 99]);
      }
    });
  });

  it('synchronises streams of two ranks by events inside the graphs, launch by launch', async () => {
    await inWorld(2, { workers: 2 }, async (world) => {
      const { runtime, ranks } = world;
      const [producer, consumer] = streamsOf(world) as [number, number];
      const ready = value(runtime.createEvent(ranks[0]!));
      const shared = filled(world, 0, [0]);
      const seen = filled(world, 1, new Uint8Array(100));
      ok(runtime, runtime.beginCapture(producer));
      ok(runtime, runtime.enqueueBarrier(producer));
      ok(runtime, runtime.recordEvent(ready, producer));
      const produce = value(runtime.endCapture(producer));
      ok(runtime, runtime.beginCapture(consumer));
      ok(runtime, runtime.enqueueBarrier(consumer));
      ok(runtime, runtime.waitEvent(consumer, ready));
      const consume = value(runtime.endCapture(consumer));
      for (let round = 0; round < 50; round++) {
        ok(runtime, runtime.launchGraph(produce, producer));
        ok(runtime, runtime.launchGraph(consume, consumer));
        ok(runtime, runtime.enqueueFill(consumer, seen, round, 1, round));
      }
      for (const stream of [producer, consumer]) value(await runtime.synchronize(stream));
      expect([...bytesOf(runtime, seen, 50)]).toEqual(Array.from({ length: 50 }, (_, i) => i));
      expect(value(runtime.queryEvent(ready))).toBe(true);
      expect(bytesOf(runtime, shared, 1)[0]).toBe(0);
    });
  });

  it('that waits for an event binds to the latest record at the launch', async () => {
    await inWorld(2, { workers: 2 }, async (world) => {
      const { runtime, ranks, faults } = world;
      const [first, second] = streamsOf(world) as [number, number];
      const event = value(runtime.createEvent(ranks[0]!));
      const mark = filled(world, 1, [0]);
      ok(runtime, runtime.beginCapture(second));
      ok(runtime, runtime.waitEvent(second, event));
      ok(runtime, runtime.enqueueFill(second, mark, 0, 1, 1));
      const graph = value(runtime.endCapture(second));
      // Never recorded yet: no wait.
      ok(runtime, runtime.launchGraph(graph, second));
      value(await runtime.synchronize(second));
      ok(runtime, runtime.enqueueFill(second, mark, 0, 1, 0));
      value(await runtime.synchronize(second));
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.recordEvent(event, first));
      ok(runtime, runtime.launchGraph(graph, second));
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(bytesOf(runtime, mark, 1)[0]).toBe(0);
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(second));
      expect(bytesOf(runtime, mark, 1)[0]).toBe(1);
    });
  });

  it('of one graph on two streams runs one launch after the other', async () => {
    await inWorld(1, { workers: 2 }, async (world) => {
      const { runtime, ranks } = world;
      const streams = [0, 1].map(() => value(runtime.createStream(ranks[0]!)));
      const size = 4 << 20;
      const [a, b] = [0, 1].map(() => value(runtime.allocate(ranks[0]!, size, 'plain'))) as [number, number];
      ok(runtime, runtime.beginCapture(streams[0]!));
      for (const fill of [1, 2, 3]) {
        ok(runtime, runtime.enqueueFill(streams[0]!, a, 0, size, fill));
        ok(runtime, runtime.enqueueCopy(streams[0]!, b, 0, a, 0, size));
      }
      const graph = value(runtime.endCapture(streams[0]!));
      for (let i = 0; i < 6; i++) ok(runtime, runtime.launchGraph(graph, streams[i % 2]!));
      for (const stream of streams) value(await runtime.synchronize(stream));
      expect(bytesOf(runtime, b, size).every((byte) => byte === 3)).toBe(true);
    });
  });

  it('of an empty graph does nothing', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime } = world;
      const [stream] = streamsOf(world);
      ok(runtime, runtime.beginCapture(stream!));
      const graph = value(runtime.endCapture(stream!));
      ok(runtime, runtime.launchGraph(graph, stream!));
      value(await runtime.synchronize(stream!));
    });
  });

  it('may be freed while launches are queued', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks, faults } = world;
      const [stream] = streamsOf(world);
      const mark = filled(world, 0, [0]);
      ok(runtime, runtime.beginCapture(stream!));
      ok(runtime, runtime.enqueueUpload(stream!, mark, 0, Uint8Array.of(5)));
      const graph = value(runtime.endCapture(stream!));
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.launchGraph(graph, stream!));
      ok(runtime, runtime.freeGraph(graph));
      refused(runtime, runtime.freeBuffer(mark), 'ERR_BUSY');
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(stream!));
      expect(bytesOf(runtime, mark, 1)[0]).toBe(5);
      ok(runtime, runtime.freeBuffer(mark));
    });
  });

  it('that fails inside reports the operation and drains the rest', async () => {
    await inWorld(2, { timeoutMs: 50 }, async (world) => {
      const { runtime, ranks } = world;
      const [stream] = streamsOf(world);
      const event = value(runtime.createEvent(ranks[0]!));
      const mark = filled(world, 0, [0]);
      ok(runtime, runtime.beginCapture(stream!));
      ok(runtime, runtime.enqueueBarrier(stream!));
      ok(runtime, runtime.enqueueFill(stream!, mark, 0, 1, 1));
      ok(runtime, runtime.recordEvent(event, stream!));
      const graph = value(runtime.endCapture(stream!));
      ok(runtime, runtime.launchGraph(graph, stream!));
      expect(error(await runtime.synchronize(stream!))).toMatchObject({
        code: code('ERR_TIMEOUT'),
        op: 'barrier',
      });
      expect(bytesOf(runtime, mark, 1)[0]).toBe(0);
      expect(value(runtime.queryEvent(event))).toBe(true);
    });
  });
});

describe('misuse', () => {
  it('of capture is refused and leaves the capture as it was', async () => {
    await inWorld(2, {}, async (world) => {
      const { runtime, ranks } = world;
      const [stream, other] = streamsOf(world) as [number, number];
      const mark = filled(world, 0, [0]);
      expect(error(runtime.endCapture(stream)).code).toBe(code('ERR_INVALID_STATE'));
      ok(runtime, runtime.beginCapture(stream));
      refused(runtime, runtime.beginCapture(stream), 'ERR_INVALID_STATE');
      refused(runtime, runtime.enqueueFill(stream, mark, 0, 2, 1), 'ERR_OUT_OF_BOUNDS');
      ok(runtime, runtime.enqueueFill(stream, mark, 0, 1, 1));
      const graph = value(runtime.endCapture(stream));
      ok(runtime, runtime.beginCapture(stream));
      refused(runtime, runtime.launchGraph(graph, stream), 'ERR_INVALID_STATE');
      value(runtime.endCapture(stream));
      refused(runtime, runtime.launchGraph(graph, other), 'ERR_FOREIGN_OBJECT');
      refused(runtime, runtime.launchGraph(mark, stream), 'ERR_INVALID_ARGUMENT');
      ok(runtime, runtime.launchGraph(graph, stream));
      ok(runtime, runtime.freeGraph(graph));
      refused(runtime, runtime.freeGraph(graph), 'ERR_DISPOSED');
      refused(runtime, runtime.launchGraph(graph, stream), 'ERR_DISPOSED');
      value(await runtime.synchronize(stream));
      expect(bytesOf(runtime, mark, 1)[0]).toBe(1);
      value(await runtime.disposeRank(ranks[1]!));
    });
  });

  it('of more launches than parameters are kept for is a full queue', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks, faults } = world;
      const streams = [0, 1].map(() => value(runtime.createStream(ranks[0]!)));
      const event = value(runtime.createEvent(ranks[0]!));
      ok(runtime, runtime.beginCapture(streams[0]!));
      ok(runtime, runtime.waitEvent(streams[0]!, event));
      const graph = value(runtime.endCapture(streams[0]!));
      ok(runtime, faults.stopRank(ranks[0]!));
      for (let i = 0; i < 256; i++) ok(runtime, runtime.launchGraph(graph, streams[0]!));
      refused(runtime, runtime.launchGraph(graph, streams[1]!), 'ERR_QUEUE_FULL');
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(streams[0]!));
      ok(runtime, runtime.launchGraph(graph, streams[1]!));
      value(await runtime.synchronize(streams[1]!));
    });
  });
});
