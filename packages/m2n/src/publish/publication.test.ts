// SPDX-License-Identifier: Apache-2.0
// A version is set on all ranks or on none, and a destination that holds half of one says so.

import { type Communicator, layout, localWorld, mesh, shard, subscribe, type World } from '@nccl-ext/core';
import { afterEach, describe, expect, it } from 'vitest';
import { createPlan } from '../plan/create-plan.js';
import { prepareTransfer } from '../transfer/prepare-transfer.js';
import { Publication } from './publication.js';

const shape = [8, 64];
const source = layout({ shape, dtype: 'f32', mesh: mesh({ tp: 2 }), placements: [shard(0)] });
const destination = layout({
  shape,
  dtype: 'f32',
  mesh: mesh({ tp: 2 }, { startRank: 2 }),
  placements: [shard(1)],
});
const plan = createPlan({ tensors: [{ name: 'w', source, destination }] });

let world: World;
afterEach(() => world.dispose());

async function open(timeoutMs = 300): Promise<void> {
  world = await localWorld({ ranks: 4, backend: 'embedded', timeoutMs });
}

async function member(comm: Communicator, value: number, verify = false) {
  const sources = { w: comm.allocate(source.localBytes(comm.rank)) };
  const destinations = { w: comm.allocate(destination.localBytes(comm.rank)) };
  sources.w.view('f32').fill(value);
  const transfer = await prepareTransfer(comm, plan, { sources, destinations, verify });
  return { sources, destinations, transfer, stream: comm.createStream() };
}

describe('Publication', () => {
  it('sets the version on every rank after pausing and before resuming', async () => {
    await open();
    const calls = await world.run(async (comm) => {
      const { transfer, stream, destinations } = await member(comm, 7);
      const publication = new Publication();
      const log: unknown[] = [publication.state];
      await publication.publish({
        transfer,
        stream,
        version: 1,
        pause: () => void log.push(publication.state),
        resume: (version) => void log.push(publication.state, version),
      });
      publication.assertWhole();
      return { log, version: publication.version, values: new Set(destinations.w.view('f32')) };
    });
    for (const { log, version } of calls) {
      expect(log).toEqual(['idle', 'admitted', 'published', 1]);
      expect(version).toBe(1);
    }
    for (const { values } of calls.slice(2)) expect(values).toEqual(new Set([7]));
  });

  it('refuses different versions on every rank, and the old one serves on', async () => {
    await open();
    const states = await world.run(async (comm) => {
      const { transfer, stream } = await member(comm, 1);
      const publication = new Publication();
      await publication.publish({ transfer, stream, version: 'a' });
      const attempt = publication.publish({ transfer, stream, version: comm.rank === 3 ? 'c' : 'b' });
      await expect(attempt).rejects.toMatchObject({ code: 'ERR_DISAGREEMENT', field: 'version', peer: 3 });
      return [publication.state, publication.version];
    });
    expect(states).toEqual(Array(4).fill(['published', 'a']));
  });

  it('moves nothing anywhere when one rank cannot pause, and every rank resumes the old version', async () => {
    await open();
    const results = await world.run(async (comm) => {
      const { transfer, stream, sources, destinations } = await member(comm, 1);
      const publication = new Publication();
      await publication.publish({ transfer, stream, version: 1 });
      sources.w.view('f32').fill(2);
      const resumed: unknown[] = [];
      const attempt = publication.publish({
        transfer,
        stream,
        version: 2,
        pause: () => {
          if (comm.rank === 1) throw new Error('engine is busy');
        },
        resume: (version) => void resumed.push(version),
      });
      await expect(attempt).rejects.toThrow(/engine is busy/);
      return {
        resumed,
        state: publication.state,
        version: publication.version,
        value: destinations.w.view('f32')[0],
      };
    });
    for (const result of results)
      expect(result).toMatchObject({ resumed: [1], state: 'published', version: 1 });
    expect(results[2]?.value).toBe(1);
  });

  it('tells the others when what a rank throws has no text', async () => {
    await open(30_000);
    await world.run(async (comm) => {
      const { transfer, stream } = await member(comm, 1);
      const pause = (): void => {
        if (comm.rank === 1) throw Object.create(null);
      };
      const attempt = new Publication().publish({ transfer, stream, version: 1, pause });
      await expect(attempt).rejects.toMatchObject(comm.rank === 1 ? {} : { code: 'ERR_RANK_LOST', peer: 1 });
    });
  });

  it('is torn when bytes moved and verification failed, says so, and a complete publish mends it', async () => {
    await open();
    const publications = world.ranks.map(() => new Publication());
    await world.run(async (comm) => {
      const { transfer, stream, sources } = await member(comm, 1, true);
      const publication = publications[comm.rank]!;
      await publication.publish({ transfer, stream, version: 1 });
      sources.w.view('f32').fill(2);
      if (comm.rank === 0) world.faults.corruptNextMove(0);
      await expect(publication.publish({ transfer, stream, version: 2 })).rejects.toMatchObject({
        code: expect.stringMatching(/ERR_VERIFY|ERR_RANK_LOST/),
      });
      expect([publication.state, publication.version, publication.whole]).toEqual(['torn', undefined, false]);
      expect(() => publication.assertWhole()).toThrow(expect.objectContaining({ code: 'ERR_TORN' }));
      await publication.publish({ transfer, stream, version: 3 });
      expect([publication.state, publication.version]).toEqual(['published', 3]);
    });
  });

  it('reports no version when a rank stops in the middle; a new communicator mends', async () => {
    await open();
    const publications = world.ranks.map(() => new Publication());
    const members = await world.run((comm) => member(comm, 1));
    const attempts = members.map(({ transfer, stream }, rank) =>
      publications[rank]!.publish({
        transfer,
        stream,
        version: 1,
        // Rank 0 stops after every rank agreed, before its bytes move.
        pause: () => {
          if (rank === 0) world.faults.stop(0);
        },
      }),
    );
    const others = await Promise.allSettled(attempts.slice(1));
    for (const outcome of others) expect(outcome).toMatchObject({ status: 'rejected', reason: { peer: 0 } });
    world.faults.resume(0);
    await expect(attempts[0]).rejects.toMatchObject({ name: 'NcclExtError' });
    for (const publication of publications) expect(publication.version).toBeUndefined();
    await world.dispose();

    await open();
    await world.run(async (comm) => {
      const { transfer, stream } = await member(comm, 5);
      await publications[comm.rank]!.publish({ transfer, stream, version: 2 });
    });
    for (const publication of publications)
      expect([publication.state, publication.version]).toEqual(['published', 2]);
  });

  it('waits for ranks that work longer than the timeout, as long as they say so', async () => {
    await open(200);
    const states = await world.run(async (comm) => {
      const { transfer, stream } = await member(comm, 1);
      const publication = new Publication();
      await publication.publish({
        transfer,
        stream,
        version: 1,
        pause: () => new Promise((resolve) => setTimeout(resolve, comm.rank === 3 ? 700 : 0)),
      });
      return publication.state;
    });
    expect(states).toEqual(Array(4).fill('published'));
  });

  it.each<[string, (rank: Awaited<ReturnType<typeof member>>) => void | Promise<void>, string]>([
    ['a transfer that was disposed', ({ transfer }) => transfer.dispose(), 'ERR_DISPOSED'],
    ['a stream that was disposed', ({ stream }) => stream.dispose(), 'ERR_DISPOSED'],
    [
      'a full stream',
      ({ stream, sources }) => {
        stream.callHost(() => new Promise((resolve) => setTimeout(resolve, 200)));
        while (stream.queued < 256) stream.fill(sources.w, 2);
      },
      'ERR_QUEUE_FULL',
    ],
  ])(
    'moves nothing when one rank has %s, whether before the call or in its pause',
    async (_, spoil, code) => {
      await open(30_000);
      for (const during of ['before', 'pause'] as const) {
        const results = await world.run(async (comm) => {
          const own = await member(comm, 1);
          const publication = new Publication();
          const resumed: unknown[] = [];
          const spoils = comm.rank === 1 ? () => spoil(own) : () => {};
          if (during === 'before') await spoils();
          const { transfer, stream } = own;
          const attempt = publication.publish({
            transfer,
            stream,
            version: 1,
            pause: () => (during === 'pause' ? spoils() : undefined),
            resume: (version) => void resumed.push(version),
          });
          await expect(attempt).rejects.toMatchObject(
            comm.rank === 1 ? { code } : { code: 'ERR_RANK_LOST', peer: 1 },
          );
          return { resumed, state: publication.state };
        });
        expect(results).toEqual(Array(4).fill({ resumed: [undefined], state: 'idle' }));
      }
    },
  );

  it('refuses the stream of another rank, and nothing moves', async () => {
    await open(30_000);
    const members = await world.run((comm) => member(comm, 1));
    const attempts = members.map(({ transfer }, rank) =>
      new Publication().publish({ transfer, stream: members[rank === 2 ? 3 : rank]!.stream, version: 1 }),
    );
    for (const [rank, outcome] of (await Promise.allSettled(attempts)).entries())
      expect(outcome).toMatchObject({
        reason: { code: rank === 2 ? 'ERR_FOREIGN_OBJECT' : 'ERR_RANK_LOST' },
      });
  });

  it('is published although the transfer goes with the old engine, also when somebody listens', async () => {
    await open();
    const events: unknown[] = [];
    const stop = subscribe('refit.published', (event) => events.push(event));
    try {
      await world.run(async (comm) => {
        const { transfer, stream } = await member(comm, 1);
        const publication = new Publication();
        await publication.publish({ transfer, stream, version: 1, resume: () => transfer.dispose() });
        expect(publication.version).toBe(1);
      });
      expect(events).toHaveLength(4);
    } finally {
      stop();
    }
  });

  it('refuses a second publish while one runs', async () => {
    await open();
    await world.run(async (comm) => {
      const { transfer, stream } = await member(comm, 1);
      const publication = new Publication();
      const first = publication.publish({ transfer, stream, version: 1 });
      await expect(publication.publish({ transfer, stream, version: 2 })).rejects.toMatchObject({
        code: 'ERR_INVALID_STATE',
      });
      await first;
    });
  });
});
