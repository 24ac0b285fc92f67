// SPDX-License-Identifier: Apache-2.0
// Invariant 8 of the design: rounds of create and dispose leave memory, file descriptors and resident size where they were.
//
// TEST_SOAK=1 runs the full 1000 rounds of everything; without it, fewer of the rounds that start whole worlds.

import { readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type { Backend, RuntimeSpi } from '../contract/index.js';
import {
  bytesOf,
  filled,
  inWorld,
  ok,
  prepareAll,
  streamsOf,
  type TestMove,
  type TestWorld,
  value,
} from './harness.test-util.js';
import { createEmbeddedBackend } from './index.js';
import { processArena } from './memory/arena.js';

const soak = process.env.TEST_SOAK === '1';
setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** Everything that a world can hold, made, used and freed. */
async function useEverything(world: TestWorld, round: number): Promise<void> {
  const { runtime, m2n, ranks } = world;
  const bytes = 1000 + (round % 7) * 300_000;
  const sources = ranks.map((_, rank) => filled(world, rank, new Uint8Array(bytes).fill(round)));
  const destinations = ranks.map((_, rank) => filled(world, rank, new Uint8Array(bytes)));
  const windows = await Promise.all(ranks.map((rank, i) => runtime.registerWindow(rank, sources[i]!)));
  const streams = streamsOf(world);
  const events = ranks.map((rank) => value(runtime.createEvent(rank)));
  const moves = ranks.map((_, from): TestMove => ({ from, to: (from + 1) % ranks.length, inner: bytes }));
  const lists = (buffers: readonly number[]): number[][] => buffers.map((buffer) => [buffer]);
  const transfers = (await prepareAll(world, moves, lists(sources), lists(destinations), true)).map(value);
  const graphs = streams.map((stream, rank) => {
    ok(runtime, runtime.beginCapture(stream));
    ok(runtime, m2n.enqueueTransfer(transfers[rank]!, stream));
    ok(runtime, runtime.recordEvent(events[rank]!, stream));
    ok(runtime, runtime.enqueueUpload(stream, sources[rank]!, 0, Uint8Array.of(1)));
    return value(runtime.endCapture(stream));
  });
  streams.forEach((stream, rank) => {
    ok(runtime, runtime.launchGraph(graphs[rank]!, stream));
    ok(runtime, runtime.waitEvent(stream, events[(rank + 1) % ranks.length]!));
    ok(runtime, runtime.enqueueBarrier(stream));
  });
  for (const outcome of await Promise.all(streams.map((stream) => runtime.synchronize(stream))))
    value(outcome);
  expect(bytesOf(runtime, destinations[0]!, bytes)[bytes - 1]).toBe(round & 255);
  for (const graph of graphs) ok(runtime, runtime.freeGraph(graph));
  for (const outcome of await Promise.all(transfers.map((transfer) => m2n.disposeTransfer(transfer))))
    value(outcome);
  for (const window of windows) ok(runtime, runtime.freeWindow(value(window)));
  for (const event of events) ok(runtime, runtime.freeEvent(event));
  for (const stream of streams) ok(runtime, runtime.freeStream(stream));
  for (const buffer of [...sources, ...destinations]) ok(runtime, runtime.freeBuffer(buffer));
}

interface Level {
  readonly live: number;
  readonly reserved: number;
  readonly descriptors: number;
  readonly resident: number;
}

async function level(runtime?: RuntimeSpi): Promise<Level> {
  // Threads and channels that ended are given back by the event loop, some of them only by a collection.
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    collect();
  }
  // Lets go of what a worker still held when it was freed.
  runtime?.memoryUsage();
  return {
    live: processArena.liveBytes,
    reserved: processArena.reservedBytes,
    descriptors: process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0,
    resident: process.memoryUsage.rss(),
  };
}

/** Bytes by which the resident size may grow in one stretch of rounds. */
const mostGrowth = 32 * 2 ** 20;

/** A leak grows in every stretch; what heaps and allocators keep in reserve grows in one and is used in the next. */
const stretches = 3;

/** Runs `rounds` rounds and compares the level after 30 % of them with that at the end. */
async function expectFlat(
  rounds: number,
  round: (number: number) => Promise<void>,
  runtime?: RuntimeSpi,
): Promise<void> {
  const early = Math.ceil(rounds * 0.3);
  let next = 0;
  const run = async (count: number): Promise<Level> => {
    for (let i = 0; i < count; i++) await round(next++);
    return level(runtime);
  };
  let before = await run(early);
  const growths: number[] = [];
  for (let stretch = 0; stretch < stretches; stretch++) {
    const after = await run(rounds - early);
    expect(after.live).toBe(before.live);
    expect(after.reserved).toBe(before.reserved);
    expect(after.descriptors).toBeLessThanOrEqual(before.descriptors);
    growths.push(after.resident - before.resident);
    if (growths.at(-1)! <= mostGrowth) return;
    before = after;
  }
  expect.fail(
    `the resident size grew by ${growths.join(', ')} bytes in stretches of ${rounds - early} rounds`,
  );
}

it('1000 rounds of buffers, windows, streams, events, graphs and transfers are flat', {
  timeout: 120_000,
}, async () => {
  await inWorld(2, { workers: 2 }, async (world) => {
    await expectFlat(1000, (round) => useEverything(world, round), world.runtime);
    expect(world.runtime.memoryUsage().allocatedBytes).toBe(0);
  });
});

it('1000 rounds of worlds split from one are flat', { timeout: 120_000 }, async () => {
  await inWorld(4, { workers: 2 }, async (world) => {
    const { runtime, ranks } = world;
    await expectFlat(
      1000,
      async (round) => {
        const members = await Promise.all(ranks.map((rank, i) => runtime.splitRank(rank, i % 2, round)));
        const handles = members.map((member) => value(member)!.handle);
        const streams = handles.map((handle) => value(runtime.createStream(handle)));
        const events = handles.map((handle) => value(runtime.createEvent(handle)));
        const own = value(runtime.createStream(ranks[0]!));
        streams.forEach((stream, i) => {
          ok(runtime, runtime.enqueueBarrier(stream));
          ok(runtime, runtime.recordEvent(events[i]!, stream));
          ok(runtime, runtime.waitEvent(own, events[i]!));
        });
        // Now and then the parent's stream still waits when the event's world goes.
        if (round % 5 > 0) value(await runtime.synchronize(own));
        for (const outcome of await Promise.all(handles.map((handle) => runtime.disposeRank(handle))))
          value(outcome);
        value(await runtime.synchronize(own));
        ok(runtime, runtime.freeStream(own));
      },
      runtime,
    );
    expect(runtime.memoryUsage().allocatedBytes).toBe(0);
  });
});

it(`${soak ? 1000 : 150} rounds of whole backends are flat`, { timeout: 600_000 }, async () => {
  await expectFlat(soak ? 1000 : 150, async (round) => {
    const backend: Backend = createEmbeddedBackend();
    await inWorld(2, { workers: 1 + (round % 3), backend }, (world) => useEverything(world, round));
  });
});

it(`${soak ? 1000 : 60} rounds of worlds that fail are flat`, { timeout: 600_000 }, async () => {
  await expectFlat(soak ? 1000 : 60, async () => {
    await inWorld(2, { workers: 1, timeoutMs: 5 }, async (world) => {
      const { runtime, ranks } = world;
      const [stream] = streamsOf(world);
      const buffer = value(runtime.allocate(ranks[0]!, 100_000, 'symmetric'));
      ok(runtime, runtime.enqueueBarrier(stream!));
      ok(runtime, runtime.enqueueUpload(stream!, buffer, 0, new Uint8Array(10)));
      await runtime.synchronize(stream!);
      ok(runtime, runtime.abortRank(ranks[1]!, 'a test'));
    });
  });
});
