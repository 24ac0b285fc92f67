// SPDX-License-Identifier: Apache-2.0
// Buffers and windows: contents, accounting, and every error of their calls.

import { describe, expect, it } from 'vitest';
import {
  bytesOf,
  code,
  error,
  inWorld,
  ok,
  prepareAll,
  refused,
  streamsOf,
  value,
} from '../harness.test-util.js';

describe('buffers', () => {
  it('count as allocated while they live, and are reserved for reuse afterwards', async () => {
    await inWorld(1, {}, async ({ runtime, ranks }) => {
      const before = runtime.memoryUsage();
      expect(before.allocatedBytes).toBe(0);
      const buffer = value(runtime.allocate(ranks[0]!, 1_000_000, 'plain'));
      expect(runtime.memoryUsage().allocatedBytes).toBe(1_000_000);
      const reserved = runtime.memoryUsage().reservedBytes;
      ok(runtime, runtime.freeBuffer(buffer));
      expect(runtime.memoryUsage()).toEqual({ allocatedBytes: 0, reservedBytes: reserved });
    });
  });

  it('come from what this machine has free', async () => {
    await inWorld(1, {}, async ({ runtime, ranks }) => {
      expect(value(runtime.availableMemoryOf(ranks[0]!))).toBeGreaterThan(0);
      expect(error(runtime.availableMemoryOf(12_345)).code).toBe(code('ERR_INVALID_ARGUMENT'));
    });
  });

  it('have addresses that never overlap while they live', async () => {
    await inWorld(2, {}, async ({ runtime, ranks }) => {
      const ranges = Array.from({ length: 50 }, (_, i) => {
        const bytes = (i * 997) % 5000;
        const start = runtime.bufferAddress(value(runtime.allocate(ranks[i % 2]!, bytes, 'plain')));
        return { start, end: start + BigInt(bytes) };
      }).sort((a, b) => Number(a.start - b.start));
      for (let i = 1; i < ranges.length; i++) expect(ranges[i]!.start >= ranges[i - 1]!.end).toBe(true);
    });
  });

  it('of no bytes are buffers too', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks } = world;
      const [stream] = streamsOf(world);
      const empty = value(runtime.allocate(ranks[0]!, 0, 'plain'));
      ok(runtime, runtime.enqueueFill(stream!, empty, 0, 0, 1));
      ok(runtime, runtime.enqueueUpload(stream!, empty, 0, new Uint8Array(0)));
      value(await runtime.synchronize(stream!));
    });
  });

  it('refuse sizes that are no sizes and more than there is', async () => {
    await inWorld(1, {}, async ({ runtime, ranks }) => {
      for (const bytes of [-1, 1.5, Number.NaN, 2 ** 60])
        expect(error(runtime.allocate(ranks[0]!, bytes, 'plain')).code).toBe(code('ERR_INVALID_ARGUMENT'));
      const refusal = error(runtime.allocate(ranks[0]!, 2 ** 52, 'plain'));
      expect(refusal.code).toBe(code('ERR_OUT_OF_MEMORY'));
      expect(refusal.detail).toContain(String(2 ** 52));
    });
  });

  it('stay while a window, a transfer, a graph or queued work uses them', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks, faults, m2n } = world;
      const [stream] = streamsOf(world);
      const [a, b] = [0, 1].map(() => value(runtime.allocate(ranks[0]!, 4096, 'symmetric'))) as [
        number,
        number,
      ];
      const busy = (user: string): void =>
        expect(refused(runtime, runtime.freeBuffer(a), 'ERR_BUSY').detail).toContain(user);

      const window = value(await runtime.registerWindow(ranks[0]!, a));
      busy('window');
      ok(runtime, runtime.freeWindow(window));

      const [transfer] = await prepareAll(world, [{ from: 0, to: 0, inner: 16 }], [[a]], [[b]]);
      busy('transfer');
      value(await m2n.disposeTransfer(value(transfer!)));

      ok(runtime, runtime.beginCapture(stream!));
      ok(runtime, runtime.enqueueFill(stream!, a, 0, 16, 1));
      busy('graph');
      const graph = value(runtime.endCapture(stream!));
      busy('graph');
      ok(runtime, runtime.freeGraph(graph));

      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.enqueueFill(stream!, a, 0, 16, 1));
      busy('queued work');
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(stream!));
      ok(runtime, runtime.freeBuffer(a));
    });
  });

  it('are gone after freeBuffer', async () => {
    await inWorld(1, {}, async ({ runtime, ranks }) => {
      const buffer = value(runtime.allocate(ranks[0]!, 16, 'plain'));
      ok(runtime, runtime.freeBuffer(buffer));
      refused(runtime, runtime.freeBuffer(buffer), 'ERR_DISPOSED');
      expect(error(runtime.mapBuffer(buffer)).code).toBe(code('ERR_DISPOSED'));
      expect(runtime.bufferAddress(buffer)).toBe(0n);
    });
  });

  it('are told from other handles', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks } = world;
      const [stream] = streamsOf(world);
      for (const handle of [0, -1, 1.5, 10_000, ranks[0]!, stream!])
        refused(runtime, runtime.freeBuffer(handle), 'ERR_INVALID_ARGUMENT');
    });
  });

  it('map to memory that streams see', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks } = world;
      const [stream] = streamsOf(world);
      const buffer = value(runtime.allocate(ranks[0]!, 64, 'plain'));
      ok(runtime, runtime.enqueueFill(stream!, buffer, 8, 16, 200));
      value(await runtime.synchronize(stream!));
      expect([...bytesOf(runtime, buffer, 64).subarray(8, 24)]).toEqual(new Array(16).fill(200));
    });
  });
});

describe('windows', () => {
  it('register collectively with different sizes, and free', async () => {
    await inWorld(3, {}, async ({ runtime, ranks }) => {
      const buffers = ranks.map((rank, i) => value(runtime.allocate(rank, 100 * (i + 1), 'symmetric')));
      const windows = await Promise.all(ranks.map((rank, i) => runtime.registerWindow(rank, buffers[i]!)));
      for (const window of windows.map(value)) {
        ok(runtime, runtime.freeWindow(window));
        refused(runtime, runtime.freeWindow(window), 'ERR_DISPOSED');
      }
    });
  });

  it('stay while a graph or queued work uses their buffer', async () => {
    await inWorld(1, {}, async (world) => {
      const { runtime, ranks, faults } = world;
      const [stream] = streamsOf(world);
      const buffer = value(runtime.allocate(ranks[0]!, 64, 'symmetric'));
      const window = value(await runtime.registerWindow(ranks[0]!, buffer));
      const busy = (user: string): void => {
        const error = refused(runtime, runtime.freeWindow(window), 'ERR_BUSY');
        expect(error.detail).toContain(`${user} still uses the buffer of this window of rank 0`);
        expect(error.help).toContain('synchronize');
      };

      ok(runtime, runtime.beginCapture(stream!));
      ok(runtime, runtime.enqueueFill(stream!, buffer, 0, 16, 1));
      busy('a graph');
      const graph = value(runtime.endCapture(stream!));
      busy('a graph');
      ok(runtime, runtime.freeGraph(graph));

      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.enqueueFill(stream!, buffer, 0, 16, 1));
      busy('queued work');
      ok(runtime, faults.resumeRank(ranks[0]!));
      value(await runtime.synchronize(stream!));
      ok(runtime, runtime.freeWindow(window));
      ok(runtime, runtime.freeBuffer(buffer));
    });
  });

  it('refuse plain, freed and foreign memory on every rank, and go on', async () => {
    await inWorld(2, {}, async ({ runtime, ranks }) => {
      const good = ranks.map((rank) => value(runtime.allocate(rank, 64, 'symmetric')));
      const plain = value(runtime.allocate(ranks[1]!, 64, 'plain'));
      const freed = value(runtime.allocate(ranks[1]!, 64, 'symmetric'));
      ok(runtime, runtime.freeBuffer(freed));
      for (const [bad, name] of [
        [plain, 'ERR_INVALID_ARGUMENT'],
        [freed, 'ERR_DISPOSED'],
        [good[0]!, 'ERR_FOREIGN_OBJECT'],
      ] as const) {
        const outcomes = await Promise.all([
          runtime.registerWindow(ranks[0]!, good[0]!),
          runtime.registerWindow(ranks[1]!, bad),
        ]);
        expect(outcomes.map((outcome) => error(outcome).code)).toEqual([code(name), code(name)]);
        expect(error(outcomes[0]).peer).toBe(1);
      }
      for (const outcome of await Promise.all(ranks.map((rank, i) => runtime.registerWindow(rank, good[i]!))))
        value(outcome);
    });
  });
});
