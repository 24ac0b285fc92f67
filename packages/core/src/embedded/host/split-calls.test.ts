// SPDX-License-Identifier: Apache-2.0
// Worlds split from worlds: who is in which, in what order, what they share with their parent and what not, and how they end.

import { describe, expect, it } from 'vitest';
import type { Outcome, SplitRank } from '../../contract/index.js';
import {
  bytesOf,
  code,
  error,
  filled,
  inWorld,
  ok,
  openWorld,
  prepareAll,
  refused,
  streamsOf,
  type TestWorld,
  value,
} from '../harness.test-util.js';

function split(
  { runtime, ranks }: TestWorld,
  colors: readonly number[],
  keys: readonly number[] = [],
): Promise<readonly Outcome<SplitRank | undefined>[]> {
  return Promise.all(ranks.map((rank, i) => runtime.splitRank(rank, colors[i]!, keys[i] ?? 0)));
}

/** The ranks of one color as a world of the harness; it is disposed with its parent. */
function part(world: TestWorld, members: readonly (SplitRank | undefined)[]): TestWorld {
  const ranks: number[] = [];
  for (const member of members) if (member !== undefined) ranks[member.rank] = member.handle;
  return { ...world, ranks };
}

async function splitAll(world: TestWorld, colors: readonly number[], keys?: readonly number[]) {
  const members = (await split(world, colors, keys)).map(value);
  const distinct = [...new Set(colors)].filter((color) => color >= 0);
  return distinct.map((color) =>
    part(
      world,
      members.map((member, i) => (colors[i] === color ? member : undefined)),
    ),
  );
}

describe('splitRank', () => {
  it('groups by color and orders by key, then by rank; color -1 gets nothing', async () => {
    await inWorld(6, { workers: 2 }, async (world) => {
      const members = (await split(world, [7, 0, 7, -1, 7, 0], [5, 0, -5, 0, 5, 0])).map(value);
      expect(members.map((member) => member && [member.rank, member.size])).toEqual([
        [1, 3],
        [0, 2],
        [0, 3],
        undefined,
        [2, 3],
        [1, 2],
      ]);
    });
  });

  it('gives each world exchanges, barriers, windows and transfers of its own', async () => {
    await inWorld(4, { workers: 2 }, async (world) => {
      const parts = await splitAll(world, [0, 1, 0, 1]);
      for (const [color, child] of parts.entries()) {
        const { runtime } = child;
        // The other world makes no calls meanwhile.
        const all = await Promise.all(
          child.ranks.map((rank, i) => runtime.exchange(rank, 'who', Uint8Array.of(color, i))),
        );
        for (const outcome of all)
          expect(value(outcome).map((bytes) => [...bytes])).toEqual([
            [color, 0],
            [color, 1],
          ]);
        const sources = [filled(child, 0, [1, 2, 3]), filled(child, 1, [0, 0, 0])];
        const windows = await Promise.all(
          child.ranks.map((rank, i) => runtime.registerWindow(rank, sources[i]!)),
        );
        const peers = value(runtime.windowPeers(value(windows[1]!)));
        expect(peers).toEqual({
          table: 0n,
          addresses: sources.map((buffer) => runtime.bufferAddress(buffer)),
        });
        const moves = [{ from: 0, to: 1, inner: 3 }];
        const transfers = (await prepareAll(child, moves, [[sources[0]!], [0]], [[0], [sources[1]!]])).map(
          value,
        );
        const streams = streamsOf(child);
        streams.forEach((stream, i) => {
          ok(runtime, child.m2n.enqueueTransfer(transfers[i]!, stream));
          ok(runtime, runtime.enqueueBarrier(stream));
        });
        for (const stream of streams) value(await runtime.synchronize(stream));
        expect([...bytesOf(runtime, sources[1]!, 3)]).toEqual([1, 2, 3]);
      }
    });
  });

  it('lets streams of parent and child wait for each other', async () => {
    await inWorld(2, { workers: 1 }, async (world) => {
      const { runtime } = world;
      const [child] = await splitAll(world, [0, 0]);
      const [buffer, down] = [filled(world, 0, [0]), new Uint8Array(1)];
      const [parentStreams, childStreams] = [streamsOf(world), streamsOf(child!)];
      const [there, back] = [
        value(runtime.createEvent(child!.ranks[1]!)),
        value(runtime.createEvent(world.ranks[1]!)),
      ];
      ok(runtime, runtime.recordEvent(there, childStreams[1]!));
      ok(runtime, runtime.enqueueBarrier(childStreams[1]!));
      ok(runtime, runtime.recordEvent(there, childStreams[1]!));
      ok(runtime, runtime.waitEvent(parentStreams[0]!, there));
      ok(runtime, runtime.enqueueFill(parentStreams[0]!, buffer, 0, 1, 9));
      ok(runtime, runtime.enqueueDownload(parentStreams[0]!, down, buffer, 0));
      ok(runtime, runtime.recordEvent(back, parentStreams[1]!));
      ok(runtime, runtime.waitEvent(childStreams[0]!, back));
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(bytesOf(runtime, buffer, 1)[0]).toBe(0);
      ok(runtime, runtime.enqueueBarrier(childStreams[0]!));
      value(await runtime.synchronize(parentStreams[0]!));
      expect(down[0]).toBe(9);
    });
  });

  it('splits what was split, and disposes it with its parent', async () => {
    const world = await openWorld(4, { workers: 2 });
    const { runtime } = world;
    const [low] = await splitAll(world, [0, 0, 0, -1], [3, 2, 1]);
    const [pair] = await splitAll(low!, [1, -1, 1]);
    const streams = streamsOf(pair!);
    for (const stream of streams) ok(runtime, runtime.enqueueBarrier(stream));
    for (const stream of streams) value(await runtime.synchronize(stream));
    expect(runtime.deviceOf(pair!.ranks[0]!).ranks).toBe(4);
    value(await runtime.disposeRank(world.ranks[0]!));
    // Rank 0 was the last of the three, and with it the last of the pair.
    for (const gone of [low!.ranks[2]!, pair!.ranks[1]!])
      expect(error(runtime.createStream(gone)).code).toBe(code('ERR_DISPOSED'));
    value(runtime.createStream(pair!.ranks[0]!));
    await world.close();
  });

  it('leaves the parent and other parts usable when one is poisoned or aborted', async () => {
    await inWorld(4, { workers: 2, timeoutMs: 60 }, async (world) => {
      const { runtime } = world;
      const parts = await splitAll(world, [0, 0, 1, 1]);
      const [lonely] = streamsOf(parts[0]!);
      ok(runtime, runtime.enqueueBarrier(lonely!));
      expect(error(await runtime.synchronize(lonely!))).toMatchObject({
        code: code('ERR_TIMEOUT'),
        rank: 0,
        peer: 1,
      });
      ok(runtime, runtime.abortRank(parts[0]!.ranks[1]!, 'enough'));
      refused(runtime, runtime.enqueueBarrier(lonely!), 'ERR_POISONED');
      for (const healthy of [world, parts[1]!]) {
        const streams = streamsOf(healthy);
        for (const stream of streams) ok(runtime, runtime.enqueueBarrier(stream));
        for (const stream of streams) value(await runtime.synchronize(stream));
      }
      expect(world.ranks.map((rank) => runtime.poisonOf(rank))).toEqual(new Array(4).fill(undefined));
      await Promise.all(parts[0]!.ranks.map((rank) => runtime.disposeRank(rank)));
      expect((await splitAll(world, [0, 0, 0, 0]))[0]!.ranks).toHaveLength(4);
    });
  });

  it('names who records an event that never comes as the waiting world does, or as its parent does', async () => {
    await inWorld(4, { workers: 2, timeoutMs: 60 }, async (world) => {
      const { runtime, faults, ranks } = world;
      const [child] = await splitAll(world, [-1, 0, 0, 0]);
      const cases = [
        { recorder: ranks[2]!, from: child!.ranks[0]!, peer: 1, name: 'rank 1' },
        {
          recorder: ranks[0]!,
          from: child!.ranks[2]!,
          peer: -1,
          name: 'rank 0 of the world that this one was split from',
        },
        { recorder: child!.ranks[1]!, from: ranks[3]!, peer: 2, name: 'rank 2' },
      ];
      for (const { recorder } of cases) ok(runtime, faults.stopRank(recorder));
      const waits = cases.map(({ recorder, from }) => {
        const event = value(runtime.createEvent(recorder));
        ok(runtime, runtime.recordEvent(event, value(runtime.createStream(recorder))));
        const stream = value(runtime.createStream(from));
        ok(runtime, runtime.waitEvent(stream, event));
        return runtime.synchronize(stream);
      });
      for (const [i, outcome] of (await Promise.all(waits)).entries()) {
        const { peer, name } = cases[i]!;
        const record = error(outcome);
        expect(record).toMatchObject({ code: code('ERR_TIMEOUT'), op: 'wait', peer });
        expect(record.detail.endsWith(`in wait for ${name}`)).toBe(true);
      }
    });
  });

  it('has faults of its own', async () => {
    await inWorld(2, { timeoutMs: 60 }, async (world) => {
      const { runtime, faults } = world;
      const [child] = await splitAll(world, [0, 0]);
      ok(runtime, faults.stopRank(child!.ranks[1]!));
      const outcome = await runtime.exchange(child!.ranks[0]!, 'alone', new Uint8Array());
      expect(error(outcome)).toMatchObject({ code: code('ERR_TIMEOUT'), peer: 1 });
      const all = await Promise.all(
        world.ranks.map((rank) => runtime.exchange(rank, 'all', new Uint8Array(1))),
      );
      for (const one of all) value(one);
    });
  });

  it('refuses wrong colors and keys on every rank, and names who passed them', async () => {
    await inWorld(3, {}, async (world) => {
      const wrong = (await split(world, [0, -2, 0])).map(error);
      expect(wrong.map(({ code: seen, rank, peer }) => [seen, rank, peer])).toEqual([
        [code('ERR_INVALID_ARGUMENT'), 0, 1],
        [code('ERR_INVALID_ARGUMENT'), -1, -1],
        [code('ERR_INVALID_ARGUMENT'), 2, 1],
      ]);
      expect(wrong[1]!.detail).toMatch(/^color is -2/);
      expect(error((await split(world, [0, 0, 0], [0, 0.5, 0]))[1]!).detail).toMatch(/^key is 0.5/);
      expect((await split(world, [0, 0, 0])).map(value)).toHaveLength(3);
    });
  });

  it('names the rank that does not come, and the one that disagrees', async () => {
    await inWorld(3, { timeoutMs: 60 }, async (world) => {
      const { runtime, ranks, faults } = world;
      ok(runtime, faults.disagree(ranks[2]!, 'split'));
      for (const outcome of await split(world, [0, 0, 0]))
        expect(error(outcome)).toMatchObject({ code: code('ERR_DISAGREEMENT'), peer: 2 });
      const late = await Promise.all([0, 2].map((i) => runtime.splitRank(ranks[i]!, 0, 0)));
      for (const outcome of late)
        expect(error(outcome)).toMatchObject({ code: code('ERR_TIMEOUT'), peer: 1 });
      expect(error(await runtime.splitRank(ranks[0]!, 0, 0)).code).toBe(code('ERR_POISONED'));
    });
  });

  it('with any number of workers serves many worlds at once', async () => {
    for (const workers of [1, 2, 4]) {
      await inWorld(8, { workers }, async (world) => {
        const { runtime } = world;
        const families = [
          world,
          ...(await splitAll(world, [0, 0, 1, 1, 2, 2, 3, 3])),
          ...(await splitAll(world, [0, 1, 0, 1, 0, 1, 0, 1])),
        ];
        const streams = families.flatMap(streamsOf);
        for (let round = 0; round < 20; round++)
          for (const stream of streams) ok(runtime, runtime.enqueueBarrier(stream));
        for (const outcome of await Promise.all(streams.map((stream) => runtime.synchronize(stream))))
          value(outcome);
      });
    }
  });
});
