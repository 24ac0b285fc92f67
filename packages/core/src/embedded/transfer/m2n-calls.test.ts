// SPDX-License-Identifier: Apache-2.0
// The protocol of contract/m2n.ts: grants, forwarding, serialised executions, graphs, spectators, casts.

import { describe, expect, it } from 'vitest';
import { castTransform } from '../../contract/index.js';
import { castArray } from '../../dtype/cast-array.js';
import { dtypeBytes, dtypeCode, type FloatDType } from '../../dtype/dtype.js';
import { assembleBackend } from '../assemble-backend.js';
import {
  bytesOf,
  filled,
  inWorld,
  ok,
  prepareAll,
  streamsOf,
  type TestMove,
  value,
} from '../harness.test-util.js';
import { BackendState } from '../host/state.js';
import { WorkerPool } from '../host/worker-pool.js';
import { Arena } from '../memory/arena.js';
import { runTransfer } from './run-transfer.test-util.js';

describe('the protocol', () => {
  it('forwards in stage 1 what arrived in stage 0', async () => {
    await inWorld(4, { workers: 2 }, async (world) => {
      const moves: TestMove[] = [
        { from: 0, to: 1, inner: 1000 },
        { from: 1, to: 2, stage: 1, inner: 1000, source: 0, destination: 8 },
        { from: 1, to: 3, stage: 1, inner: 500, source: 500, destination: 3 },
        { from: 2, to: 3, inner: 100, destination: 2000 },
      ];
      await runTransfer(world, moves, true, 3);
    });
  });

  it('touches no destination before its rank reaches the operation', async () => {
    await inWorld(2, { workers: 2 }, async (world) => {
      const { runtime, m2n, faults, ranks } = world;
      const source = filled(world, 0, new Uint8Array(64).fill(5));
      const destination = filled(world, 1, new Uint8Array(64).fill(9));
      const streams = streamsOf(world);
      const transfers = (
        await prepareAll(world, [{ from: 0, to: 1, inner: 64 }], [[source], [0]], [[0], [destination]])
      ).map(value);
      ok(runtime, faults.stopRank(ranks[1]!));
      transfers.forEach((transfer, rank) => {
        ok(runtime, m2n.enqueueTransfer(transfer, streams[rank]!));
      });
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect(bytesOf(runtime, destination, 64).every((byte) => byte === 9)).toBe(true);
      ok(runtime, faults.resumeRank(ranks[1]!));
      for (const stream of streams) value(await runtime.synchronize(stream));
      expect(bytesOf(runtime, destination, 64).every((byte) => byte === 5)).toBe(true);
    });
  });

  it('serialises executions of one transfer on several streams', async () => {
    await inWorld(2, { workers: 2 }, async (world) => {
      const { runtime, m2n } = world;
      const size = 1 << 20;
      const source = filled(world, 0, new Uint8Array(size).fill(3));
      const destination = filled(world, 1, new Uint8Array(size));
      const streams = [0, 1, 2].map(() => streamsOf(world));
      const transfers = (
        await prepareAll(
          world,
          [{ from: 0, to: 1, inner: size }],
          [[source], [0]],
          [[0], [destination]],
          true,
        )
      ).map(value);
      for (let round = 0; round < 4; round++)
        for (const [sender, receiver] of streams) {
          ok(runtime, m2n.enqueueTransfer(transfers[0]!, sender!));
          ok(runtime, m2n.enqueueTransfer(transfers[1]!, receiver!));
        }
      for (const stream of streams.flat()) value(await runtime.synchronize(stream));
      expect(transfers.map((transfer) => m2n.progressOf(transfer).completed)).toEqual([12, 12]);
      expect(m2n.progressOf(transfers[0]!).writtenBytes).toBe(12 * size);
    });
  });

  it('runs from a graph, again and again', async () => {
    await inWorld(3, { workers: 2 }, async (world) => {
      const { runtime, m2n } = world;
      const sources = world.ranks.map((_, rank) => filled(world, rank, new Uint8Array(16).fill(rank + 1)));
      const destinations = world.ranks.map((_, rank) => filled(world, rank, new Uint8Array(16)));
      const ring = [0, 1, 2].map((from): TestMove => ({ from, to: (from + 1) % 3, inner: 16 }));
      const transfers = (
        await prepareAll(
          world,
          ring,
          sources.map((buffer) => [buffer]),
          destinations.map((buffer) => [buffer]),
        )
      ).map(value);
      const streams = streamsOf(world);
      const graphs = streams.map((stream, rank) => {
        ok(runtime, runtime.beginCapture(stream));
        ok(runtime, m2n.enqueueTransfer(transfers[rank]!, stream));
        ok(runtime, runtime.enqueueCopy(stream, sources[rank]!, 0, destinations[rank]!, 0, 16));
        ok(runtime, runtime.enqueueBarrier(stream));
        return value(runtime.endCapture(stream));
      });
      for (let step = 0; step < 4; step++)
        streams.forEach((stream, rank) => {
          ok(runtime, runtime.launchGraph(graphs[rank]!, stream));
        });
      for (const stream of streams) value(await runtime.synchronize(stream));
      // Four turns of a ring of three leave each rank with its predecessor's value.
      expect(destinations.map((buffer) => bytesOf(runtime, buffer, 1)[0])).toEqual([3, 1, 2]);
      expect(m2n.progressOf(transfers[0]!).completed).toBe(4);
    });
  });

  it('lets spectators pass', async () => {
    await inWorld(4, {}, async (world) => {
      const moves: TestMove[] = [{ from: 2, to: 1, inner: 4000 }];
      await runTransfer(world, moves, false, 2);
    });
  });

  it('converts while it copies', async () => {
    const floats: readonly FloatDType[] = ['f64', 'f32', 'f16', 'bf16', 'f8e4m3', 'f8e5m2'];
    const arena = new Arena({ kernels: false, limit: 2 ** 32 });
    const plain = assembleBackend(new BackendState(arena, new WorkerPool(arena)));
    for (const options of [{}, { backend: plain }])
      await inWorld(2, options, async (world) => {
        const { runtime, m2n } = world;
        const count = 5000;
        for (const from of floats)
          for (const to of floats.filter((dtype) => dtype !== from)) {
            const [fromBytes, toBytes] = [dtypeBytes(from), dtypeBytes(to)];
            const input = Uint8Array.from(
              { length: count * fromBytes },
              (_, i) => (Math.imul(i + 1, 2654435761) >>> 13) & 255,
            );
            const source = filled(world, 0, input);
            const destination = filled(world, 1, new Uint8Array(count * toBytes));
            const moves: TestMove[] = [
              {
                from: 0,
                to: 1,
                inner: 2500,
                counts: [1, 1, 2],
                sourceStrides: [0, 0, 2500 * fromBytes],
                destinationStrides: [0, 0, 2500 * toBytes],
                transform: castTransform(dtypeCode(from), dtypeCode(to)),
              },
            ];
            const transfers = (
              await prepareAll(world, moves, [[source], [0]], [[0], [destination]], true)
            ).map(value);
            const streams = streamsOf(world);
            transfers.forEach((transfer, rank) => {
              ok(runtime, m2n.enqueueTransfer(transfer, streams[rank]!));
            });
            for (const stream of streams) value(await runtime.synchronize(stream));
            const want = new Uint8Array(count * toBytes);
            castArray(from, input, to, want);
            expect(Buffer.compare(bytesOf(runtime, destination, want.length), want)).toBe(0);
          }
      });
  });

  it('may read a tensor under another number than it writes', async () => {
    await inWorld(2, {}, async (world) => {
      const { runtime, m2n } = world;
      const source = filled(world, 0, new Uint8Array(8).fill(1));
      const destination = filled(world, 1, new Uint8Array(8));
      const moves: TestMove[] = [{ from: 0, to: 1, inner: 8, tensor: 2, sourceTensor: 1 }];
      const transfers = (
        await prepareAll(world, moves, [[0, source, 0], []], [[], [0, 0, destination]], true)
      ).map(value);
      const streams = streamsOf(world);
      transfers.forEach((transfer, rank) => {
        ok(runtime, m2n.enqueueTransfer(transfer, streams[rank]!));
      });
      for (const stream of streams) value(await runtime.synchronize(stream));
      expect(bytesOf(runtime, destination, 8)[7]).toBe(1);
    });
  });
});
