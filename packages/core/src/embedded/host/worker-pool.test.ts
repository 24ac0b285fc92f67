// SPDX-License-Identifier: Apache-2.0
// Workers are reused, counted, and missed when they die: a dead worker is an error everywhere, never a hang.

import { describe, expect, it } from 'vitest';
import { assembleBackend } from '../assemble-backend.js';
import { code, error, inWorld, ok, streamsOf, type TestWorld, value } from '../harness.test-util.js';
import { Arena } from '../memory/arena.js';
import { BackendState } from './state.js';
import { type Lease, WorkerPool } from './worker-pool.js';

/** A backend with a pool of its own whose threads a test can end. */
class Workshop {
  readonly leases: Lease[] = [];
  readonly pool: WorkerPool;
  readonly state: BackendState;

  constructor() {
    const arena = new Arena({ kernels: true, limit: 2 ** 32 });
    this.pool = new WorkerPool(arena);
    this.state = new BackendState(arena, this.pool);
    const lease = this.pool.lease.bind(this.pool);
    this.pool.lease = async (count, owner) => {
      const leases = await lease(count, owner);
      this.leases.push(...leases);
      return leases;
    };
  }
}

describe('the pool', () => {
  it('reuses workers of worlds that ended', async () => {
    const shop = new Workshop();
    for (let round = 0; round < 5; round++)
      await inWorld(
        2,
        { workers: 2, backend: assembleBackend(new BackendState(shop.state.arena, shop.pool)) },
        async () => {},
      );
    expect(shop.pool.size).toBe(2);
  });

  it('keeps few idle workers and serves several worlds at once', async () => {
    const shop = new Workshop();
    const backend = () => assembleBackend(new BackendState(shop.state.arena, shop.pool));
    await inWorld(2, { workers: 8, backend: backend() }, async (a) => {
      await inWorld(2, { workers: 4, backend: backend() }, async (b) => {
        expect(shop.pool.size).toBe(12);
        for (const { runtime, ranks } of [a, b]) {
          const streams = ranks.map((rank) => value(runtime.createStream(rank)));
          for (const stream of streams) ok(runtime, runtime.enqueueBarrier(stream));
          for (const stream of streams) value(await runtime.synchronize(stream));
        }
      });
    });
    await expect.poll(() => shop.pool.size).toBe(8);
  });

  it('takes new blocks of memory to workers that already run', async () => {
    const arena = new Arena({ kernels: false, limit: 2 ** 33 });
    await inWorld(
      1,
      { workers: 1, backend: assembleBackend(new BackendState(arena, new WorkerPool(arena))) },
      async (world) => {
        const { runtime, ranks } = world;
        const [stream] = streamsOf(world);
        for (let i = 0; i < 5; i++) {
          const buffer = value(runtime.allocate(ranks[0]!, 2 ** 27, 'plain'));
          ok(runtime, runtime.enqueueFill(stream!, buffer, 2 ** 27 - 4, 4, i));
          value(await runtime.synchronize(stream!));
        }
        expect(arena.blocks.length).toBeGreaterThan(4);
      },
    );
  });
});

describe('a dead worker', () => {
  async function inBroken(
    body: (world: TestWorld, die: () => Promise<unknown>) => Promise<void>,
  ): Promise<void> {
    const shop = new Workshop();
    await inWorld(2, { workers: 2, timeoutMs: 60_000, backend: assembleBackend(shop.state) }, (world) =>
      body(world, () => shop.leases[0]!.thread.terminate()),
    );
  }

  it('ends everything that waits with ERR_INTERNAL', async () => {
    await inBroken(async (world, die) => {
      const { runtime, ranks } = world;
      const streams = streamsOf(world);
      const event = value(runtime.createEvent(ranks[0]!));
      ok(runtime, runtime.enqueueBarrier(streams[0]!));
      ok(runtime, runtime.recordEvent(event, streams[0]!));
      const waits = [
        runtime.synchronize(streams[0]!),
        runtime.synchronizeEvent(event),
        runtime.exchange(ranks[0]!, 't', new Uint8Array(0)),
      ];
      await die();
      for (const outcome of await Promise.all(waits)) {
        expect(error(outcome).code).toBe(code('ERR_INTERNAL'));
        expect(error(outcome).detail).toContain('died');
      }
    });
  });

  it('ends what waits in split worlds too, which can still be disposed', async () => {
    await inBroken(async (world, die) => {
      const { runtime, ranks } = world;
      const members = await Promise.all(ranks.map((rank) => runtime.splitRank(rank, 0, 0)));
      const child = value(members[0]!)!.handle;
      const stream = value(runtime.createStream(child));
      ok(runtime, runtime.enqueueBarrier(stream));
      const wait = runtime.synchronize(stream);
      await die();
      expect(error(await wait).code).toBe(code('ERR_INTERNAL'));
      value(await runtime.disposeRank(child));
    });
  });

  it('makes every later call an error, and the world can still be disposed', async () => {
    await inBroken(async (world, die) => {
      const { runtime, ranks, faults } = world;
      const [stream] = streamsOf(world);
      const buffer = value(runtime.allocate(ranks[0]!, 8, 'plain'));
      const event = value(runtime.createEvent(ranks[0]!));
      await die();
      const internal = code('ERR_INTERNAL');
      for (const status of [
        runtime.enqueueBarrier(stream!),
        runtime.enqueueFill(stream!, buffer, 0, 8, 1),
        runtime.recordEvent(event, stream!),
        runtime.beginCapture(stream!),
        runtime.freeBuffer(buffer),
        runtime.freeStream(stream!),
        runtime.abortRank(ranks[0]!, ''),
        faults.stopRank(ranks[0]!),
      ])
        expect(status).toBe(internal);
      for (const outcome of [
        runtime.allocate(ranks[0]!, 8, 'plain'),
        runtime.createStream(ranks[0]!),
        runtime.createEvent(ranks[0]!),
        runtime.mapBuffer(buffer),
        runtime.queryEvent(event),
        await runtime.synchronize(stream!),
        await runtime.exchange(ranks[0]!, 't', new Uint8Array(0)),
        await runtime.registerWindow(ranks[0]!, buffer),
      ])
        expect(error(outcome).code).toBe(internal);
      expect(runtime.poisonOf(ranks[0]!)?.code).toBe(internal);
    });
  });
});

it('a missing build says so', async () => {
  const arena = new Arena({ kernels: true, limit: 2 ** 32 });
  const pool = new WorkerPool(arena);
  pool.lease = () => Promise.reject(new Error('dist/embedded/worker.js is missing; run tsc -b to build it'));
  const { runtime } = assembleBackend(new BackendState(arena, pool));
  const record = error(await runtime.createLocalRanks({ ranks: 1, timeoutMs: 1000, workers: 1, sms: 0 }));
  expect(record.code).toBe(code('ERR_INTERNAL'));
  expect(record.detail).toContain('run tsc -b');
  expect(arena.liveBytes).toBe(0);
});
