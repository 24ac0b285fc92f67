// SPDX-License-Identifier: Apache-2.0
// A world in this process: creation, running all ranks, failing fast, faults, and disposal.

import { describe, expect, it, vi } from 'vitest';
import type { NcclExtError } from '../errors/nccl-ext-error.js';
import { subscribe } from '../observe/channels.js';
import { localWorld } from './local-world.js';

const embedded = { backend: 'embedded', timeoutMs: 300 } as const;

describe('localWorld', () => {
  it('gives every rank its communicator, and their results by rank', async () => {
    const world = await localWorld({ ...embedded, ranks: 3 });
    try {
      expect(await world.run((comm) => comm.rank * 10 + comm.size)).toEqual([3, 13, 23]);
      expect(world.backend.name).toBe('embedded');
    } finally {
      await world.dispose();
    }
  });

  it('leaves its ranks, and parts of them, the path of transfers that was asked for', async () => {
    const world = await localWorld({ ...embedded, ranks: 2, transferPath: 'mapped' });
    try {
      const parts = await world.run((comm) => comm.split({ color: 0 }));
      expect([...world.ranks, ...parts].map((comm) => comm?.transferPath)).toEqual(Array(4).fill('mapped'));
    } finally {
      await world.dispose();
    }
  });

  it('warns of an unknown variable once on stderr, and in every logger', async () => {
    const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const logger = { debug() {}, info() {}, warn: vi.fn(), error() {} };
    vi.stubEnv('NCCL_EXT_WORKER', '2');
    try {
      for (const own of [undefined, undefined, logger, logger])
        await (await localWorld({ ...embedded, ranks: 1, logger: own })).dispose();
      expect(stderr).toHaveBeenCalledExactlyOnceWith(
        expect.stringContaining('did you mean NCCL_EXT_WORKERS?'),
      );
      expect(logger.warn).toHaveBeenCalledTimes(2);
    } finally {
      vi.unstubAllEnvs();
      stderr.mockRestore();
    }
  });

  it.each([0, -1, 1.5, Number.NaN, 1025])('refuses %s ranks', async (ranks) => {
    await expect(localWorld({ ...embedded, ranks })).rejects.toMatchObject({
      code: 'ERR_INVALID_ARGUMENT',
      field: 'ranks',
    });
  });

  it('refuses devices that do not fit the ranks', async () => {
    for (const devices of [[0], new Array<number>(2)])
      await expect(localWorld({ ...embedded, ranks: 2, devices })).rejects.toMatchObject({
        field: 'devices',
      });
  });

  it('refuses unknown options and suggests the name that was meant', async () => {
    const options = { ...embedded, ranks: 1, timeoutMS: 5 } as Parameters<typeof localWorld>[0];
    await expect(localWorld(options)).rejects.toMatchObject({
      code: 'ERR_INVALID_ARGUMENT',
      help: expect.stringContaining('timeoutMs'),
    });
  });

  it('refuses the size of the plan cache, which it could not change, and says where it goes', async () => {
    const options = { ...embedded, ranks: 1, planCacheEntries: 0 } as Parameters<typeof localWorld>[0];
    await expect(localWorld(options)).rejects.toMatchObject({
      code: 'ERR_INVALID_ARGUMENT',
      message: expect.stringContaining('planCacheEntries is no option of a world.'),
      help: 'Pass cacheEntries to createPlan, or set NCCL_EXT_PLAN_CACHE_ENTRIES for the whole process.',
      field: 'planCacheEntries',
    });
  });

  it.each([{ address: 'node0' }, { port: 29_501 }, { token: 'secret' }])(
    'refuses %o, because its ranks meet nowhere',
    async (meeting) => {
      const [name] = Object.keys(meeting);
      await expect(localWorld({ ...embedded, ranks: 1, ...meeting })).rejects.toMatchObject({
        code: 'ERR_INVALID_ARGUMENT',
        message: expect.stringContaining(`${name} is no option of localWorld.`),
        help: `Its ranks are all in this process. Pass ${name} to init, for ranks that a launcher starts.`,
        field: name,
      });
    },
  );

  it('lists no option that it does not take', async () => {
    const options = { ...embedded, ranks: 1, xyzzy: 1 } as Parameters<typeof localWorld>[0];
    const error = (await localWorld(options).catch((reason: unknown) => reason)) as NcclExtError;
    expect(error).toMatchObject({ code: 'ERR_INVALID_ARGUMENT', field: 'xyzzy' });
    expect(error.help).toContain('timeoutMs');
    expect(error.help).not.toMatch(/planCacheEntries|address|port|token/);
  });

  it('rejects with the reason of a signal that has fired', async () => {
    const reason = new Error('enough');
    await expect(localWorld({ ...embedded, ranks: 1, signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    );
  });

  it('takes a topology by name and places ranks accordingly', async () => {
    const world = await localWorld({ ...embedded, ranks: 12, topology: 'dgx-h100' });
    try {
      expect([world.topology.domainOf(7), world.topology.domainOf(8)]).toEqual([0, 1]);
    } finally {
      await world.dispose();
    }
  });

  it('aborts a rank whose body throws, so that peers fail at once, and throws its error', async () => {
    const world = await localWorld({ ...embedded, ranks: 3, timeoutMs: 20_000 });
    try {
      const began = performance.now();
      const peers: unknown[] = [];
      const run = world.run(async (comm) => {
        if (comm.rank === 1) throw new Error('rank 1 is ill');
        await comm.agree('step', { step: 1 }).catch((error) => {
          peers.push(error);
          throw error;
        });
      });
      await expect(run).rejects.toThrow('rank 1 is ill');
      expect(performance.now() - began).toBeLessThan(10_000);
      expect(peers).toEqual([
        expect.objectContaining({ code: 'ERR_RANK_LOST', peer: 1 }),
        expect.objectContaining({ code: 'ERR_RANK_LOST', peer: 1 }),
      ]);
    } finally {
      await world.dispose();
    }
  });

  it('tells of its creation and disposal', async () => {
    const heard: unknown[] = [];
    const stops = [
      subscribe('world.created', (event) => heard.push(event)),
      subscribe('world.disposed', (event) => heard.push(event)),
    ];
    const world = await localWorld({ ...embedded, ranks: 2 });
    await world.dispose();
    for (const stop of stops) stop();
    expect(heard).toEqual([
      { backend: 'embedded', worldSize: 2, localRanks: [0, 1] },
      { backend: 'embedded', localRanks: [0, 1] },
    ]);
  });

  it('disposes what its ranks made, with work still in flight, and refuses use afterwards', async () => {
    const world = await localWorld({ ...embedded, ranks: 2 });
    const [comm] = world.ranks;
    const buffer = comm!.allocate(1 << 20);
    const stream = comm!.createStream();
    for (let i = 0; i < 50; i++) stream.fill(buffer, i);
    await world.dispose();
    expect(() => buffer.view('u8')).toThrow(expect.objectContaining({ code: 'ERR_DISPOSED' }));
    expect(() => comm!.createStream()).toThrow(expect.objectContaining({ code: 'ERR_DISPOSED' }));
    await expect(world.run(() => 0)).rejects.toMatchObject({ code: 'ERR_DISPOSED' });
  });

  it('names ranks and field when ranks disagree', async () => {
    const world = await localWorld({ ...embedded, ranks: 4 });
    try {
      const outcomes = await Promise.allSettled(
        world.ranks.map((comm) => comm.agree('step', { step: comm.rank === 2 ? 8 : 7 })),
      );
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({
          reason: { code: 'ERR_DISAGREEMENT', field: 'step', peer: 2, expected: 7, seen: 8 },
        });
      }
      world.faults.disagree(1, 'agree');
      const altered = await Promise.allSettled(world.ranks.map((comm) => comm.agree('step', { step: 7 })));
      for (const outcome of altered) expect(outcome).toMatchObject({ reason: { code: 'ERR_DISAGREEMENT' } });
    } finally {
      await world.dispose();
    }
  });

  it('refuses faults on a rank that does not exist', async () => {
    const world = await localWorld({ ...embedded, ranks: 1 });
    try {
      expect(() => world.faults.stop(1)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field: 'rank' }),
      );
    } finally {
      await world.dispose();
    }
  });
});
