// SPDX-License-Identifier: Apache-2.0
// Cases on several processes: a failure anywhere is one everywhere, processes stay in step after it, and one that is lost is named.

import { Communicator } from '@nccl-ext/core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CheckCase, ConformanceCase } from '../cases/case.js';
import { selectCases } from '../cases/select-cases.js';
import type { RunSummary } from './case-result.js';
import { type CheckContext, errorOf, requireThat } from './check-context.js';
import { PlayedProcesses } from './process-group.test-util.js';
import { runCases } from './run-cases.js';
import { Skipped } from './skipped.js';

let played: PlayedProcesses;
beforeEach(async () => {
  played = await PlayedProcesses.start(4);
});
afterEach(() => played.end());

function check(what: string, ranks: number, run: CheckCase['run']): CheckCase {
  return { kind: 'check', name: `faults/${what}`, group: 'faults', ranks, run, spread: true };
}

/** Every process runs the same cases; they must agree in all but their times. */
async function runEverywhere(cases: readonly ConformanceCase[]): Promise<RunSummary> {
  const summaries = await Promise.all(played.groups.map((processes) => runCases(cases, { processes })));
  const [first, ...others] = summaries.map(({ cases: results }) => results.map(({ ms: _, ...rest }) => rest));
  for (const other of others) expect(other).toEqual(first);
  return summaries[0]!;
}

const fine = check('fine', 4, async (context) => {
  await context.shared(4);
});

describe('cases on four processes', () => {
  // Rounds that count bytes need a process of their own.
  const table = selectCases({ maxRanks: 4 }).filter(
    ({ group, name }) => !group.startsWith('ep-') && !name.includes('rounds'),
  );

  it.each([
    ['sharding'],
    ['casts'],
    ['meshes'],
    ['boundaries'],
    ['groups'],
    ['graphs'],
    ['refusals'],
    ['streams'],
    ['faults'],
    ['publish'],
    ['lifetime'],
  ])('%s', { timeout: 120_000 }, async (group) => {
    const cases = table.filter((candidate) => candidate.group === group);
    const { failed, passed, cases: results } = await runEverywhere(cases);
    expect(results.filter(({ status }) => status === 'failed')).toEqual([]);
    expect(failed).toBe(0);
    expect(passed).toBeGreaterThan(0);
    for (const { status, detail } of results)
      if (status === 'skipped') expect(detail).toBe('needs all its ranks in one process');
  });

  it('skips what one process must drive', async () => {
    const { spread: _, ...alone } = fine;
    const { skipped } = await runEverywhere([alone, { ...alone, ranks: 1 }]);
    expect(skipped).toBe(1);
  });

  it('skips what the ranks that take part skip, whoever looks on', async () => {
    const skipping = check('skips', 2, async (context) => {
      const world = await context.shared(2);
      if (world.ranks.length > 0) throw new Skipped('not on these ranks');
    });
    const { cases } = await runEverywhere([skipping, fine]);
    expect(cases.map(({ status, detail }) => [status, detail])).toEqual([
      ['skipped', 'not on these ranks'],
      ['passed', ''],
    ]);
  });
});

describe('a case that goes wrong', () => {
  const failsOn = (rank: number, ranks: number): CheckCase =>
    check(`fails on ${rank}`, ranks, async (context) => {
      const world = await context.shared(ranks);
      requireThat(world.ranks[0]?.rank !== rank, 'no');
    });

  it('on one rank fails on all, and names it', async () => {
    const { cases } = await runEverywhere([failsOn(2, 4), fine, failsOn(1, 2), fine]);
    expect(cases.map(({ status }) => status)).toEqual(['failed', 'passed', 'failed', 'passed']);
    expect(cases[0]!.detail).toBe('process 2: no');
    // Worlds of failed cases are not used again: of 4, of 4, of 2; the second of 4 stays.
    expect(played.made).toBe(3);
  });

  it('on a rank that asks for no further world ends the others', async () => {
    const leavesEarly = check('leaves early', 4, async (context) => {
      const world = await context.fresh({ ranks: 4 });
      requireThat(world.ranks[0]!.rank !== 3, 'early');
      for (let more = 0; more < 2; more++) await errorOf(context.fresh({ ranks: 4 }));
      await context.fresh({ ranks: 2 });
    });
    const { cases } = await runEverywhere([leavesEarly, fine]);
    expect(cases.map(({ status }) => status)).toEqual(['failed', 'passed']);
    expect(cases[0]!.detail).toContain('process 3: early');
    expect(cases[0]!.detail).toContain('process 0: process 3 has ended this case already');
  });
});

describe('processes', () => {
  it('refuse together SMs that one of them has not, those that would look on too', async () => {
    const device = { ...played.control.ranks[0]!.device, multiprocessors: 132 };
    const shares = vi.spyOn(Communicator.prototype, 'device', 'get').mockImplementation(function share(
      this: Communicator,
    ) {
      return { ...device, smBudget: this.rank === 1 ? 13 : 52 };
    });
    const told = vi.fn();
    try {
      const cases = selectCases({ group: 'sharding', maxRanks: 2 });
      const runs = played.groups.map((processes) =>
        errorOf(runCases(cases, { processes, sms: 28, onResult: told })),
      );
      for (const error of await Promise.all(runs))
        expect(error).toMatchObject({
          code: 'ERR_INVALID_ARGUMENT',
          field: 'sms',
          message: expect.stringContaining(
            '28 SMs are more than a rank has in cases with 2 ranks: process 1: 13 SMs.',
          ),
        });
      expect(told).not.toHaveBeenCalled();
    } finally {
      shares.mockRestore();
    }
  });

  it('hear of all objections, also where the world failed that one of them asked for', async () => {
    const heard = await Promise.all(
      played.groups.map(async (group, rank) => {
        if (rank === 1) await errorOf(group.world({ ranks: 4 }));
        return group.objections(rank === 2 ? 'no' : undefined);
      }),
    );
    expect(heard).toEqual(Array(4).fill(['process 2: no']));
    expect(await Promise.all(played.groups.map((group) => group.objections(undefined)))).toEqual(
      Array(4).fill([]),
    );
  });

  it('take no result of a case for an objection', async () => {
    const [first, ...others] = played.groups;
    const { name, group, ranks } = fine;
    const result = { name, group, status: 'failed', detail: 'no', ms: 0 } as const;
    const errors = await Promise.all([
      errorOf(first!.objections('no')),
      ...others.map((process) => errorOf(process.combine(result, ranks))),
    ]);
    expect(errors.map((error) => (error as Error).message)).toEqual([
      'other processes do not end what they do before the first case',
      ...Array(3).fill('other processes do not end faults/fine'),
    ]);
  });

  it('with other cases refuse to begin', async () => {
    const runs = played.groups.map((processes, rank) =>
      errorOf(runCases(rank === 1 ? [fine, fine] : [fine], { processes })),
    );
    for (const error of await Promise.all(runs))
      expect(error).toMatchObject({ code: 'ERR_DISAGREEMENT', peer: 1 });
  });

  it('learn which one is lost', async () => {
    const quits = (context: CheckContext): Promise<void> => {
      void context;
      played.control.ranks[2]!.abort('killed');
      return new Promise(() => {});
    };
    const runs = played.groups.map((processes, rank) =>
      errorOf(runCases([rank === 2 ? { ...fine, run: quits } : fine], { processes })),
    );
    for (const run of [runs[0]!, runs[1]!, runs[3]!])
      expect(await run).toMatchObject({ code: 'ERR_RANK_LOST', peer: 2 });
  });
});
