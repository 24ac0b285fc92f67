// SPDX-License-Identifier: Apache-2.0
// The runner with cases that pass, fail, break, hang and cannot run.

import { localWorld, NcclExtError, type World } from '@nccl-ext/core';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { CheckCase } from '../cases/case.js';
import { selectCases } from '../cases/select-cases.js';
import { type CheckContext, expectRefusal } from './check-context.js';
import { runCase } from './run-case.js';
import { runCases } from './run-cases.js';
import { Skipped } from './skipped.js';
import { WorldPool } from './world-pool.js';

function check(what: string, run: (context: CheckContext) => Promise<void>): CheckCase {
  return { kind: 'check', name: `refusals/${what}`, group: 'refusals', ranks: 1, run };
}

/** Worlds that only count. */
function countingPool(): { pool: WorldPool; made: number[]; disposed: number[] } {
  const made: number[] = [];
  const disposed: number[] = [];
  const pool = new WorldPool(async ({ ranks }) => {
    made.push(ranks);
    return { size: 0, ranks: [], dispose: async () => void disposed.push(ranks) } as unknown as World;
  });
  return { pool, made, disposed };
}

/** Worlds whose ranks say that they share one GPU of 132 SMs. */
async function onOneGpu({ ranks }: { readonly ranks: number }): Promise<World> {
  const world = await localWorld({ ranks, backend: 'embedded' });
  for (const rank of world.ranks) {
    const device = { ...rank.device, multiprocessors: 132, smBudget: Math.floor(105 / ranks) };
    vi.spyOn(rank, 'device', 'get').mockReturnValue(device);
  }
  return world;
}

describe('SMs of a reshard', () => {
  const cases = selectCases({ group: 'sharding', maxRanks: 4 }).filter(({ ranks }) => ranks !== 3);

  it('are refused at once where the largest world has not so many for a rank', async () => {
    const told = vi.fn();
    const run = runCases(cases, { world: onOneGpu, sms: 28, onResult: told });
    await expect(run).rejects.toMatchObject({
      code: 'ERR_INVALID_ARGUMENT',
      field: 'sms',
      message: expect.stringContaining('28 SMs are more than a rank has in cases with 4 ranks: 26 SMs.'),
      seen: 28,
    });
    expect(told).not.toHaveBeenCalled();
  });

  it('are taken up to the share of a rank', async () => {
    const few = [cases.find(({ ranks }) => ranks === 4)!];
    expect(await runCases(few, { world: onOneGpu, sms: 26 })).toMatchObject({ passed: 1, failed: 0 });
  });
});

describe('runCases', () => {
  const cases = [
    check('passes', async () => {}),
    check('fails', async () => {
      throw new Error('seven is not eight');
    }),
    check('breaks', async () => {
      throw new NcclExtError('ERR_TIMEOUT', 'rank 3 is missing');
    }),
    check('cannot run', async () => {
      throw new Skipped('no faults here');
    }),
  ];

  it('counts, reports each case, and goes on after a failure', async () => {
    const seen: string[] = [];
    const summary = await runCases(cases, {
      onResult: ({ name, status }, done, total) => void seen.push(`${done}/${total} ${name} ${status}`),
    });
    expect(seen).toEqual([
      '1/4 refusals/passes passed',
      '2/4 refusals/fails failed',
      '3/4 refusals/breaks failed',
      '4/4 refusals/cannot run skipped',
    ]);
    expect(summary).toMatchObject({ passed: 1, failed: 2, skipped: 1 });
    expect(summary.cases.map(({ detail }) => detail)).toEqual([
      '',
      'seven is not eight',
      'ERR_TIMEOUT: rank 3 is missing',
      'no faults here',
    ]);
  });

  it('skips what is left once it is aborted', async () => {
    const controller = new AbortController();
    const summary = await runCases(cases, {
      signal: controller.signal,
      onResult: () => controller.abort(),
    });
    expect(summary).toMatchObject({ passed: 1, failed: 0, skipped: 3 });
  });
});

describe('runCase', () => {
  const { pool } = countingPool();
  afterAll(() => pool.dispose());

  it('ends a case that hangs', async () => {
    const hung = check('hangs', () => new Promise(() => {}));
    const result = await runCase(pool, hung, { limitMs: 20 });
    expect(result).toMatchObject({ status: 'failed', detail: 'did not end within 0.02 s' });
  });

  it('disposes the worlds of a check even when it fails', async () => {
    const own = countingPool();
    const failing = check('fails', async (context) => {
      await context.fresh({ ranks: 5 });
      throw new Error('no');
    });
    expect((await runCase(own.pool, failing)).status).toBe('failed');
    expect(own.disposed).toEqual([5]);
  });
});

describe('the pool', () => {
  it('shares worlds by size and keeps the three that were used last', async () => {
    const { pool, made, disposed } = countingPool();
    for (const ranks of [1, 2, 1, 3, 4, 1, 2]) await pool.shared(ranks);
    expect(made).toEqual([1, 2, 3, 4, 2]);
    expect(disposed).toEqual([2, 3]);
    await pool.dispose();
    expect(disposed.length).toBe(5);
  });
});

describe('expectRefusal', () => {
  const refuse = (): never => {
    throw new NcclExtError('ERR_MESH', 'axes.x must be 1 or more', { peer: 2 });
  };

  it('takes the error that was asked for', async () => {
    await expectRefusal(refuse, { code: 'ERR_MESH', says: ['axes.x'], peer: 2 });
  });

  it('rejects another code, text, rank, class, and none at all', async () => {
    await expect(expectRefusal(refuse, { code: 'ERR_LAYOUT' })).rejects.toThrow(
      'expected ERR_LAYOUT, got ERR_MESH',
    );
    await expect(expectRefusal(refuse, { code: 'ERR_MESH', says: ['axes.y'] })).rejects.toThrow(
      'does not say axes.y',
    );
    await expect(expectRefusal(refuse, { code: 'ERR_MESH', peer: 1 })).rejects.toThrow('names rank 2, not 1');
    await expect(
      expectRefusal(() => Promise.reject(new TypeError('x')), { code: 'ERR_MESH' }),
    ).rejects.toThrow('TypeError');
    await expect(expectRefusal(() => 7, { code: 'ERR_MESH' })).rejects.toThrow('went through and gave 7');
  });
});
