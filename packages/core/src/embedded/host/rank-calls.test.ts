// SPDX-License-Identifier: Apache-2.0
// Making and ending ranks, with work in flight and without.

import { describe, expect, it } from 'vitest';
import {
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
import { createEmbeddedBackend } from '../index.js';

describe('createLocalRanks', () => {
  it('refuses numbers that make no world, each by name', async () => {
    const { runtime } = createEmbeddedBackend();
    const good = { ranks: 2, timeoutMs: 1000, workers: 0, sms: 0 };
    for (const [field, wrong] of [
      ['ranks', { ...good, ranks: 0 }],
      ['ranks', { ...good, ranks: 1.5 }],
      ['ranks', { ...good, ranks: 5000 }],
      ['workers', { ...good, workers: -1 }],
      ['workers', { ...good, workers: 1000 }],
      ['sms', { ...good, sms: -1 }],
      ['sms', { ...good, sms: 1025 }],
      ['sms', { ...good, sms: [4] }],
      ['sms[1]', { ...good, sms: [4, 1.5] }],
      ['timeoutMs', { ...good, timeoutMs: 0 }],
      ['timeoutMs', { ...good, timeoutMs: Number.POSITIVE_INFINITY }],
    ] as const) {
      const record = error(await runtime.createLocalRanks(wrong));
      expect(record.code).toBe(code('ERR_INVALID_ARGUMENT'));
      expect(record.detail).toContain(field);
    }
  });

  it('refuses to join ranks of other processes and says what to do', async () => {
    const { runtime } = createEmbeddedBackend();
    const place = {
      rank: 1,
      worldSize: 2,
      localRank: 1,
      localWorldSize: 2,
      address: 'a',
      port: 1,
      timeoutMs: 1,
      sms: 0,
    };
    const record = error(await runtime.joinRank(place));
    expect(record.code).toBe(code('ERR_SINGLE_PROCESS'));
    expect(record.help).toContain('localWorld');
  });

  it('names the device', async () => {
    await inWorld(1, {}, async ({ runtime, ranks }) => {
      expect(runtime.deviceOf(ranks[0]!)).toEqual({
        index: 0,
        name: 'embedded (memory of this process)',
        uuid: '',
        multiprocessors: 0,
        ranks: 1,
        smBudget: 0,
      });
    });
  });

  it('makes nothing after the backend was disposed', async () => {
    const backend = createEmbeddedBackend();
    await backend.dispose();
    const outcome = await backend.runtime.createLocalRanks({ ranks: 1, timeoutMs: 1000, workers: 1, sms: 0 });
    expect(error(outcome).code).toBe(code('ERR_DISPOSED'));
  });

  it('tells about itself', () => {
    const { info } = createEmbeddedBackend();
    expect([info.name, info.contractVersion]).toEqual(['embedded', 1]);
    expect(info.version).toMatch(/^\d+\.\d+\.\d+/);
  });
});

describe('disposeRank', () => {
  it('makes every handle stale and frees what the rank had', async () => {
    const world = await openWorld(2);
    const { runtime, ranks } = world;
    const streams = streamsOf(world);
    const buffer = value(runtime.allocate(ranks[0]!, 1000, 'symmetric'));
    const event = value(runtime.createEvent(ranks[0]!));
    value(await runtime.disposeRank(ranks[0]!));
    expect(runtime.memoryUsage().allocatedBytes).toBe(0);
    refused(runtime, runtime.freeBuffer(buffer), 'ERR_DISPOSED');
    refused(runtime, runtime.recordEvent(event, streams[0]!), 'ERR_DISPOSED');
    expect(error(runtime.createStream(ranks[0]!)).code).toBe(code('ERR_DISPOSED'));
    expect(error(await runtime.disposeRank(ranks[0]!)).code).toBe(code('ERR_DISPOSED'));
    expect(runtime.poisonOf(ranks[0]!)?.code).toBe(code('ERR_DISPOSED'));
    refused(runtime, runtime.abortRank(ranks[0]!, ''), 'ERR_DISPOSED');
    value(await runtime.disposeRank(ranks[1]!));
    await world.close();
  });

  it('lets work in flight finish', async () => {
    const world = await openWorld(2, { workers: 2 });
    const { runtime, ranks } = world;
    const streams = streamsOf(world);
    const down = new Uint8Array(1);
    const mark = filled(world, 0, [0]);
    ok(runtime, runtime.enqueueBarrier(streams[0]!));
    ok(runtime, runtime.enqueueFill(streams[0]!, mark, 0, 1, 42));
    ok(runtime, runtime.enqueueDownload(streams[0]!, down, mark, 0));
    const first = runtime.disposeRank(ranks[0]!);
    refused(runtime, runtime.enqueueBarrier(streams[0]!), 'ERR_DISPOSED');
    ok(runtime, runtime.enqueueBarrier(streams[1]!));
    value(await first);
    expect(down[0]).toBe(42);
    value(await runtime.disposeRank(ranks[1]!));
  });

  it('ends within its deadline although a peer never comes or the rank stands still', async () => {
    for (const stop of [false, true]) {
      const world = await openWorld(2, { timeoutMs: 80 });
      const { runtime, ranks, faults } = world;
      const streams = streamsOf(world);
      if (stop) ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.enqueueBarrier(streams[0]!));
      const start = performance.now();
      value(await runtime.disposeRank(ranks[0]!));
      expect(performance.now() - start).toBeLessThan(2000);
      value(await runtime.disposeRank(ranks[1]!));
    }
  });

  it('during capture gives up the capture', async () => {
    const world = await openWorld(1);
    const { runtime, ranks } = world;
    const [stream] = streamsOf(world);
    const buffer = filled(world, 0, [1, 2]);
    ok(runtime, runtime.beginCapture(stream!));
    ok(runtime, runtime.enqueueUpload(stream!, buffer, 0, Uint8Array.of(1)));
    value(await runtime.disposeRank(ranks[0]!));
    expect(runtime.memoryUsage().allocatedBytes).toBe(0);
  });

  it('twice at once is one disposal', async () => {
    const world = await openWorld(1);
    const both = await Promise.all([0, 1].map(() => world.runtime.disposeRank(world.ranks[0]!)));
    expect(both.map((outcome) => outcome.ok)).toEqual([true, true]);
  });
});
