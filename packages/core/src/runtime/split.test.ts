// SPDX-License-Identifier: Apache-2.0
// Communicators of parts of a world: their ranks, topology, failures and ends.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { localWorld } from '../world/local-world.js';
import type { World } from '../world/world.js';

let world: World;
beforeEach(async () => {
  world = await localWorld({ ranks: 12, backend: 'embedded', topology: 'dgx-h100', timeoutMs: 300 });
});
afterEach(() => world.dispose());

describe('split', () => {
  it('gives each part its ranks in order, and the topology of just these', async () => {
    const parts = await world.run((comm) => comm.split({ color: comm.rank % 2, key: -comm.rank }));
    // Rank 11 comes first of the odd ones.
    expect(parts.map((part) => [part!.rank, part!.size])).toEqual(
      world.ranks.map((_, rank) => [Math.floor((11 - rank) / 2), 6]),
    );
    const { topology } = parts[11]!;
    expect([0, 1, 2, 5].map((rank) => topology.domainOf(rank))).toEqual([1, 1, 0, 0]);
    expect([0, 5].map((rank) => topology.deviceOf(rank))).toEqual([3, 1]);
    expect(topology.links).toEqual(world.topology.links);
    await Promise.all(parts.map((part) => part!.agree('parity', { odd: part!.topology.deviceOf(0) % 2 })));
  });

  it('gives color -1 undefined, and splits parts in turn', async () => {
    const parts = await world.run((comm) => comm.split({ color: comm.rank < 4 ? 0 : -1 }));
    expect(parts.slice(4)).toEqual(new Array(8).fill(undefined));
    const pairs = await Promise.all(
      parts.slice(0, 4).map((part) => part!.split({ color: Math.floor(part!.rank / 2) })),
    );
    expect(pairs.map((pair) => [pair!.rank, pair!.size])).toEqual([
      [0, 2],
      [1, 2],
      [0, 2],
      [1, 2],
    ]);
    await Promise.all(parts.slice(0, 4).map((part) => part!.dispose()));
    for (const pair of pairs) expect(pair!.disposed).toBe(true);
    expect(world.ranks[0]!.disposed).toBe(false);
  });

  it('refuses wrong colors, keys and options by name, before anybody meets', async () => {
    const [comm] = world.ranks;
    for (const [field, options] of [
      ['options', undefined],
      ['color', {}],
      ['color', { color: -2 }],
      ['color', { color: 0.5 }],
      ['key', { color: 0, key: 2 ** 31 }],
    ] as const)
      await expect(comm!.split(options as never)).rejects.toMatchObject({
        code: 'ERR_INVALID_ARGUMENT',
        field,
      });
    await world.run((rank) => rank.agree('alive', {}));
  });

  it('times out naming who does not come', async () => {
    const some = world.ranks.filter((comm) => comm.rank !== 7).map((comm) => comm.split({ color: 0 }));
    for (const outcome of await Promise.allSettled(some))
      expect(outcome).toMatchObject({ reason: { code: 'ERR_TIMEOUT', peer: 7, op: 'split' } });
  });
});

describe('a part', () => {
  it('that fails leaves its parent usable', async () => {
    const parts = await world.run((comm) => comm.split({ color: 0 }));
    await expect(parts[0]!.agree('alone', {})).rejects.toMatchObject({ code: 'ERR_TIMEOUT' });
    expect(parts[0]!.failure).toMatchObject({ code: 'ERR_TIMEOUT' });
    expect(world.ranks[0]!.failure).toBeUndefined();
    await world.run((comm) => comm.agree('alive', {}));
  });

  it('is aborted with its parent, so that nobody waits in it', async () => {
    const parts = await world.run((comm) => comm.split({ color: 0 }));
    const stream = parts[3]!.createStream();
    stream.barrier();
    world.ranks[3]!.abort('enough');
    await expect(stream.synchronize()).rejects.toMatchObject({ code: 'ERR_ABORTED' });
    await expect(parts[4]!.agree('x', {})).rejects.toMatchObject({ code: 'ERR_RANK_LOST', peer: 3 });
  });

  it('has objects of its own, orders streams with its parent by events, and ends with it', async () => {
    const [comm] = world.ranks;
    const parts = await world.run((rank) => rank.split({ color: rank.rank < 2 ? 0 : -1 }));
    const [part, peer] = parts;
    const buffer = comm!.allocate(8);
    const own = part!.createStream();
    expect(() => own.fill(buffer, 1)).toThrow(expect.objectContaining({ code: 'ERR_FOREIGN_OBJECT' }));
    const ready = part!.createEvent();
    own.barrier();
    own.record(ready);
    const stream = comm!.createStream();
    stream.wait(ready);
    stream.fill(buffer, 5);
    peer!.createStream().barrier();
    await stream.synchronize();
    expect(buffer.view('u8')[0]).toBe(5);
    await comm!.dispose();
    expect([part!.disposed, own.disposed, peer!.disposed]).toEqual([true, true, false]);
    await expect(part!.split({ color: 0 })).rejects.toMatchObject({ code: 'ERR_DISPOSED' });
  });
});
