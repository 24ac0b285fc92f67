// SPDX-License-Identifier: Apache-2.0
// Executions that cannot end well: missing, lost and slow peers, disposal in flight, misuse.

import { describe, expect, it } from 'vitest';
import {
  bytesOf,
  code,
  error,
  filled,
  inWorld,
  ok,
  prepareAll,
  refused,
  streamsOf,
  type TestMove,
  type TestWorld,
  value,
} from '../harness.test-util.js';

const zeros = (bytes: number): Uint8Array => new Uint8Array(bytes);

describe('running', () => {
  /** A prepared transfer from rank 0 to rank 1. */
  async function pair(world: TestWorld) {
    const source = filled(world, 0, new Uint8Array(64).fill(1));
    const destination = filled(world, 1, zeros(64));
    const [sender, receiver] = (
      await prepareAll(world, [{ from: 0, to: 1, inner: 64 }], [[source], [0]], [[0], [destination]])
    ).map(value) as [number, number];
    const [first, second] = streamsOf(world) as [number, number];
    return { source, destination, sender, receiver, first, second };
  }

  it.each(['sender', 'receiver'] as const)(
    'a missing peer ends the %s with a timeout that names it',
    async (role) => {
      await inWorld(2, { timeoutMs: 60 }, async (world) => {
        const { runtime, m2n, ranks } = world;
        const { sender, receiver, first, second } = await pair(world);
        const [transfer, stream, rank] = role === 'sender' ? [sender, first, 0] : [receiver, second, 1];
        ok(runtime, m2n.enqueueTransfer(transfer, stream));
        const record = error(await runtime.synchronize(stream));
        expect(record).toMatchObject({
          code: code('ERR_TIMEOUT'),
          op: 'transfer',
          rank,
          peer: 1 - rank,
          expected: 1n,
          seen: 0n,
        });
        expect(record.detail).toContain(`rank ${1 - rank}`);
        expect(runtime.poisonOf(ranks[rank]!)?.code).toBe(code('ERR_TIMEOUT'));
        expect(runtime.poisonOf(ranks[1 - rank]!)).toBeUndefined();
        refused(runtime, m2n.enqueueTransfer(transfer, stream), 'ERR_POISONED');
      });
    },
  );

  it('a sender that comes after its receiver gave up writes nothing', async () => {
    await inWorld(2, { timeoutMs: 60 }, async (world) => {
      const { runtime, m2n, faults, ranks } = world;
      const { destination, sender, receiver, first, second } = await pair(world);
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, m2n.enqueueTransfer(sender, first));
      ok(runtime, m2n.enqueueTransfer(receiver, second));
      expect(error(await runtime.synchronize(second)).code).toBe(code('ERR_TIMEOUT'));
      ok(runtime, faults.resumeRank(ranks[0]!));
      expect(error(await runtime.synchronize(first))).toMatchObject({ code: code('ERR_RANK_LOST'), peer: 1 });
      expect(bytesOf(runtime, destination, 64)).toEqual(zeros(64));
    });
  });

  it('streams of other ranks, freed transfers and full queues are refused', async () => {
    await inWorld(2, {}, async (world) => {
      const { runtime, m2n, faults, ranks } = world;
      const { source, sender, receiver, first, second } = await pair(world);
      refused(runtime, m2n.enqueueTransfer(sender, second), 'ERR_FOREIGN_OBJECT');
      ok(runtime, faults.stopRank(ranks[0]!));
      for (let i = 0; i < 256; i++) ok(runtime, runtime.enqueueFill(first, source, 0, 1, 1));
      refused(runtime, m2n.enqueueTransfer(sender, first), 'ERR_QUEUE_FULL');
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(first));
      value(await m2n.disposeTransfer(sender));
      refused(runtime, m2n.enqueueTransfer(sender, first), 'ERR_DISPOSED');
      expect(error(await m2n.disposeTransfer(sender)).code).toBe(code('ERR_DISPOSED'));
      expect(m2n.progressOf(sender)).toEqual({ writtenBytes: 0, completed: 0 });
      value(await m2n.disposeTransfer(receiver));
    });
  });

  it('disposal waits for executions in flight; a graph keeps the transfer', async () => {
    await inWorld(2, {}, async (world) => {
      const { runtime, m2n } = world;
      const { destination, sender, receiver, first, second } = await pair(world);
      ok(runtime, m2n.enqueueTransfer(sender, first));
      const disposal = m2n.disposeTransfer(sender);
      refused(runtime, m2n.enqueueTransfer(sender, first), 'ERR_DISPOSED');
      ok(runtime, runtime.beginCapture(second));
      ok(runtime, m2n.enqueueTransfer(receiver, second));
      const graph = value(runtime.endCapture(second));
      expect(error(await m2n.disposeTransfer(receiver)).code).toBe(code('ERR_BUSY'));
      ok(runtime, runtime.launchGraph(graph, second));
      value(await disposal);
      value(await runtime.synchronize(second));
      expect(bytesOf(runtime, destination, 1)[0]).toBe(1);
      ok(runtime, runtime.freeGraph(graph));
      value(await m2n.disposeTransfer(receiver));
    });
  });

  it('a receiver that gives up after a timeout can free its memory; a late sender learns that it is gone', async () => {
    await inWorld(2, { timeoutMs: 80 }, async (world) => {
      const { runtime, m2n, faults, ranks } = world;
      const { destination, sender, receiver, first, second } = await pair(world);
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, m2n.enqueueTransfer(sender, first));
      ok(runtime, m2n.enqueueTransfer(receiver, second));
      expect(error(await runtime.synchronize(second)).code).toBe(code('ERR_TIMEOUT'));
      value(await m2n.disposeTransfer(receiver));
      ok(runtime, runtime.freeBuffer(destination));
      ok(runtime, faults.resumeRank(ranks[0]!));
      expect(error(await runtime.synchronize(first))).toMatchObject({ code: code('ERR_RANK_LOST'), peer: 1 });
    });
  });

  it('the end of a rank ends its peers at once', async () => {
    await inWorld(2, { timeoutMs: 60_000 }, async (world) => {
      const { runtime, m2n, ranks } = world;
      const { receiver, second } = await pair(world);
      ok(runtime, m2n.enqueueTransfer(receiver, second));
      value(await runtime.disposeRank(ranks[0]!));
      expect(error(await runtime.synchronize(second))).toMatchObject({
        code: code('ERR_RANK_LOST'),
        peer: 0,
      });
    });
  });

  it('a slow peer that makes progress is no missing peer', async () => {
    await inWorld(2, { timeoutMs: 15, workers: 1 }, async (world) => {
      const { runtime, m2n } = world;
      const size = 512 * 2 ** 20;
      const source = value(runtime.allocate(world.ranks[0]!, size, 'plain'));
      const destination = value(runtime.allocate(world.ranks[1]!, size, 'plain'));
      // Single bytes take long enough for several deadlines.
      const count = size / 4;
      const moves: TestMove[] = [
        {
          from: 0,
          to: 1,
          inner: 1,
          counts: [1, 1, count],
          sourceStrides: [0, 0, 4],
          destinationStrides: [0, 0, 4],
        },
      ];
      const transfers = (await prepareAll(world, moves, [[source], [0]], [[0], [destination]])).map(value);
      const streams = streamsOf(world);
      const start = performance.now();
      transfers.forEach((transfer, rank) => {
        ok(runtime, m2n.enqueueTransfer(transfer, streams[rank]!));
      });
      for (const stream of streams) value(await runtime.synchronize(stream));
      expect(performance.now() - start).toBeGreaterThan(15);
    });
  });
});
