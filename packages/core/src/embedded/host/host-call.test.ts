// SPDX-License-Identifier: Apache-2.0
// Functions that streams call on the host: order, promises, graphs, errors, and ranks that go on meanwhile.

import { expect, it } from 'vitest';
import { bytesOf, code, error, filled, inWorld, ok, streamsOf, value } from '../harness.test-util.js';

it('runs in stream order, at once or asynchronously, while other ranks go on', async () => {
  await inWorld(2, {}, async ({ runtime, ranks, ...world }) => {
    const [first, second] = streamsOf({ runtime, ranks, ...world }) as [number, number];
    const buffer = filled({ runtime, ranks, ...world }, 0, [0, 0, 0, 0]);
    const bytes = bytesOf(runtime, buffer, 4);
    const seen: number[] = [];
    let release = (): void => {};
    ok(runtime, runtime.enqueueFill(first, buffer, 0, 4, 1));
    ok(
      runtime,
      runtime.enqueueHostCall(first, async () => {
        seen.push(bytes[0]!);
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        bytes[1] = 9;
      }),
    );
    ok(runtime, runtime.enqueueFill(first, buffer, 2, 1, 7));
    ok(
      runtime,
      runtime.enqueueHostCall(second, () => {
        seen.push(100);
      }),
    );
    value(await runtime.synchronize(second));
    while (seen.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(bytes[2]).toBe(1);
    release();
    value(await runtime.synchronize(first));
    expect([...bytes]).toEqual([1, 9, 7, 1]);
    expect(seen.sort()).toEqual([1, 100]);
  });
});

it.each(['throws', 'rejects'])(
  'keeps the cause when it %s; the stream and all ranks stay usable',
  async (how) => {
    await inWorld(2, {}, async (world) => {
      const { runtime } = world;
      const [first, second] = streamsOf(world) as [number, number];
      const buffer = filled(world, 0, [0]);
      const cause = new TypeError('no such expert');
      ok(
        runtime,
        runtime.enqueueHostCall(first, () => {
          if (how === 'throws') throw cause;
          return Promise.reject(cause);
        }),
      );
      ok(runtime, runtime.enqueueFill(first, buffer, 0, 1, 3));
      for (const stream of [first, second]) ok(runtime, runtime.enqueueBarrier(stream));
      const record = error(await runtime.synchronize(first));
      expect(record).toMatchObject({ code: code('ERR_HOST_CALL'), op: 'callHost', rank: 0, cause });
      expect(record.detail).toContain('no such expert');
      expect(bytesOf(runtime, buffer, 1)[0]).toBe(3);
      value(await runtime.synchronize(second));
      value(await runtime.synchronize(first));
    });
  },
);

it('keeps a cause that has no text', async () => {
  await inWorld(1, {}, async (world) => {
    const { runtime } = world;
    const [stream] = streamsOf(world) as [number];
    for (const cause of [Object.create(null) as object, Symbol('none')]) {
      ok(
        runtime,
        runtime.enqueueHostCall(stream, () => {
          throw cause;
        }),
      );
      const record = error(await runtime.synchronize(stream));
      expect(record.code).toBe(code('ERR_HOST_CALL'));
      expect(record.cause).toBe(cause);
    }
  });
});

it('is a node of a graph, called at each launch and released with it', async () => {
  await inWorld(1, {}, async (world) => {
    const { runtime } = world;
    const [stream] = streamsOf(world) as [number];
    let calls = 0;
    ok(runtime, runtime.beginCapture(stream));
    ok(
      runtime,
      runtime.enqueueHostCall(stream, async () => {
        await null;
        calls++;
      }),
    );
    const graph = value(runtime.endCapture(stream));
    expect(calls).toBe(0);
    for (let i = 0; i < 50; i++) ok(runtime, runtime.launchGraph(graph, stream));
    value(await runtime.synchronize(stream));
    expect(calls).toBe(50);
    ok(runtime, runtime.freeGraph(graph));
  });
});

it('is a rank that is late for others while it runs: they time out on it', async () => {
  await inWorld(2, { timeoutMs: 200 }, async (world) => {
    const { runtime, ranks } = world;
    const [first, second] = streamsOf(world) as [number, number];
    ok(
      runtime,
      runtime.enqueueHostCall(first, () => new Promise((resolve) => setTimeout(resolve, 300))),
    );
    ok(runtime, runtime.enqueueBarrier(first));
    ok(runtime, runtime.enqueueBarrier(second));
    const record = error(await runtime.synchronize(second));
    expect(record).toMatchObject({ code: code('ERR_TIMEOUT'), peer: 0 });
    expect(runtime.poisonOf(ranks[0]!)).toBeUndefined();
    await runtime.synchronize(first);
  });
});

it('does not hold up the end of its rank, however long its promise takes', async () => {
  await inWorld(2, { timeoutMs: 5000 }, async (world) => {
    const { runtime, ranks } = world;
    const [first] = streamsOf(world) as [number];
    let settle = (): void => {};
    ok(
      runtime,
      runtime.enqueueHostCall(
        first,
        () =>
          new Promise((resolve) => {
            settle = resolve;
          }),
      ),
    );
    const done = runtime.synchronize(first);
    await new Promise((resolve) => setTimeout(resolve, 20));
    ok(runtime, runtime.abortRank(ranks[0]!, 'enough'));
    await done;
    value(await runtime.disposeRank(ranks[0]!));
    settle();
    await new Promise((resolve) => setTimeout(resolve, 5));
  });
});
