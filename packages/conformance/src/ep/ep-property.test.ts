// SPDX-License-Identifier: Apache-2.0
// Random groups, routings and ways to execute them through the embedded backend with 1, 2 and 8 workers, some with late or
// missing ranks, against the oracle. TEST_PROPERTY_RUNS sets how many.

import { env } from 'node:process';
import { localWorld, NcclExtError } from '@nccl-ext/core';
import type { EpQuantization } from '@nccl-ext/core/contract';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { CaseWorld } from '../run/case-world.js';
import { runCase } from '../run/run-case.js';
import { WorldPool } from '../run/world-pool.js';
import { epCase, everyLayout } from './cases/base.js';
import type { EpCase, HandleSpec, RoutingSpec } from './cases/ep-case.js';
import { EpSession } from './run/ep-session.js';
import { runEpCase } from './run/run-ep-case.js';

const runs = Number(env.TEST_PROPERTY_RUNS ?? 16);
const poolOf = (workers: number): WorldPool =>
  new WorldPool((request) => localWorld({ ...request, workers, backend: 'embedded', logLevel: 'error' }));
const pools = new Map([1, 2, 8].map((workers) => [workers, poolOf(workers)]));
afterAll(() => Promise.all([...pools.values()].map((pool) => pool.dispose())));

/** Draws integers; smaller is simpler, so that failures shrink. */
type Draw = (least: number, most: number) => number;
const cases = (least = 2, most = 16) =>
  fc.gen().map((draw) => randomCase((min, max) => draw(fc.integer, { min, max }), least, most));
const settings = { interruptAfterTimeLimit: 590_000, markInterruptAsFailure: false };

describe('any step of expert parallelism', () => {
  it.each([1, 2, 8])(
    'gives the bytes of the oracle with %i workers',
    { timeout: 600_000 },
    async (workers) => {
      await fc.assert(
        fc.asyncProperty(cases(), async (epCase) => {
          const { status, detail } = await runCase(pools.get(workers)!, epCase);
          expect(status, `${detail}\n${JSON.stringify(epCase)}`).toBe('passed');
        }),
        { ...settings, numRuns: runs },
      );
    },
  );

  it('gives them whoever is late', { timeout: 600_000 }, async () => {
    const delays = fc.array(fc.nat(6), { minLength: 6, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(cases(2, 6), delays, async (epCase, late) => {
        const world = await pools.get(2)!.shared(epCase.ranks);
        for (let rank = 0; rank < epCase.ranks; rank++) world.faults.delay(rank, late[rank]!);
        const problem = await runEpCase(world, epCase);
        for (let rank = 0; rank < epCase.ranks; rank++) world.faults.delay(rank, 0);
        expect(problem, JSON.stringify(epCase)).toBeUndefined();
      }),
      { ...settings, numRuns: Math.ceil(runs / 4) },
    );
  });

  it('refuses an overflow on every rank or on none, as the oracle says', { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(cases(2, 6), fc.integer({ min: 1, max: 30 }), async (epCase, receiveBudget) => {
        const world = await pools.get(2)!.shared(epCase.ranks);
        const problem = await refuseOverflow(world, epCase, receiveBudget);
        expect(problem, `budget ${receiveBudget} of ${JSON.stringify(epCase)}`).toBeUndefined();
      }),
      { ...settings, numRuns: Math.ceil(runs / 4) },
    );
  });

  it('names a rank that stands still, and goes on without it', { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(cases(3, 5), fc.nat(4), async (epCase, number) => {
        const lost = number % epCase.ranks;
        const problem = await surviveLoss({ ...epCase, capture: false, streams: 1 }, lost);
        expect(problem, `rank ${lost} of ${JSON.stringify(epCase)}`).toBeUndefined();
      }),
      { ...settings, numRuns: Math.ceil(runs / 10) },
    );
  });
});

/** Steps of each handle under the policy that refuses; a sentence that says what went wrong. */
async function refuseOverflow(
  world: CaseWorld,
  random: EpCase,
  receiveBudget: number,
): Promise<string | undefined> {
  const config = { ...random.config, receiveBudget, overflow: 'error' as const };
  const handles = random.handles.map(
    ({ layout, alignment = 1 }): HandleSpec =>
      layout === 'packed' || layout === 'expert-major' ? { layout: 'packed', alignment } : { layout: 'flat' },
  );
  const epCase = { ...random, config, handles, sendOnly: false, streams: 1 };
  const session = await EpSession.open(world, epCase);
  for (let epoch = 0; epoch < 3; epoch++) {
    const step = session.openStep(epoch);
    const fits = step.plan.received.map(({ demand }) => demand <= receiveBudget);
    await session.fill(step);
    session.enqueue(step);
    for (const rank of session.allRanks) {
      const error = await session.streams[rank]![0]!.synchronize().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      const wanted = fits.every((fit) => fit);
      const own = !fits[rank];
      if (wanted ? error === undefined : NcclExtError.is(error, 'ERR_OVERFLOW')) {
        if (wanted || !own || (error as NcclExtError).seen === step.plan.received[rank]!.demand) continue;
      }
      return `step ${epoch}, rank ${rank} ends with ${String(error)}`;
    }
    const difference = fits.every((fit) => fit) ? await session.difference(step) : undefined;
    if (difference !== undefined) return difference;
    await session.closeStep(step);
  }
  await session.dispose();
  return undefined;
}

/** A sentence that says what went wrong. */
async function surviveLoss(epCase: EpCase, lost: number): Promise<string | undefined> {
  const { ranks } = epCase;
  const world = await localWorld({ ranks, timeoutMs: 500, backend: 'embedded', logLevel: 'error' });
  try {
    const session = await EpSession.open(world, epCase, { mask: true });
    const survivors = session.allRanks.filter((rank) => rank !== lost);
    const step = session.openStep(0);
    await session.fill(step);
    world.faults.stop(lost);
    session.enqueue(step);
    for (const rank of survivors) {
      const error = await session.streams[rank]![0]!.synchronize().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (!NcclExtError.is(error, 'ERR_TIMEOUT') || error.peer !== lost)
        return `rank ${rank} ends with ${String(error)}`;
    }
    await Promise.all(survivors.map((rank) => session.groups[rank]!.changeMembership(survivors)));
    for (const epoch of [1, 2]) {
      const next = session.openStep(epoch, { members: survivors });
      await session.fill(next, survivors);
      session.enqueue(next, survivors);
      await session.synchronize(survivors);
      const difference = await session.difference(next, survivors);
      if (difference !== undefined) return difference;
    }
    return undefined;
  } finally {
    await world.dispose();
  }
}

function randomCase(draw: Draw, leastRanks: number, mostRanks: number): EpCase {
  const pick = <T>(values: readonly T[]): T => values[draw(0, values.length - 1)]!;
  const ranks = draw(leastRanks, mostRanks);
  const dtype = pick(['bf16', 'f32', 'f16'] as const);
  const quantization = pick<EpQuantization | undefined>([
    undefined,
    undefined,
    'forward',
    'fp8',
    'mxfp8',
    'fp8-pow2',
  ]);
  const combineQuantization = pick([undefined, undefined, 'fp8'] as const);
  const blocks = combineQuantization === 'fp8' || (quantization?.startsWith('fp8') ?? false);
  // The fewest bytes of a row are 16, also of one that is forwarded with a byte per element.
  const hidden = blocks
    ? 128 * draw(1, 2)
    : quantization === undefined
      ? (dtype === 'f32' ? 4 : 8) * draw(1, 20)
      : 32 * draw(1, 4);
  const experts = draw(1, 40);
  const topK = Math.min(experts, pick([1, 2, 3, 4, 8, 32]));
  const maxTokensPerRank = draw(1, 8);
  const capture = draw(0, 5) === 0;
  const budget = draw(0, 2);
  const token = combineQuantization === undefined && draw(0, 4) === 0;
  const zones = everyLayout.filter(({ layout }) => layout === 'expert-major' || layout === 'packed');
  const handles = Array.from({ length: draw(1, 3) }, (): HandleSpec => {
    const handle = pick(token ? zones : everyLayout);
    return handle.layout === 'packed' ? { ...handle, alignment: 2 ** draw(0, 3) } : handle;
  });
  const lowLatencyOnly = handles.every(({ layout }) => layout === 'expert-major' || layout === 'rank-major');
  const highThroughputOnly = handles.every(({ layout }) => layout === 'flat' || layout === 'packed');
  const pipelined = !capture && draw(0, 1) === 1;
  const routing = (): RoutingSpec => ({
    ids: pick(['uniform', 'uniform', 'hot', 'one-rank', 'own-rank', 'striped', 'none'] as const),
    holes: pick([0, 10, 60, 100]),
    // A graph has one number of tokens per rank.
    tokens: capture ? [draw(0, maxTokensPerRank), maxTokensPerRank] : pick(['ragged', 'full'] as const),
    weights: pick(['usual', 'edges'] as const),
  });
  const first = routing();
  const routings = [first, capture ? { ...routing(), tokens: first.tokens! } : routing()];
  return epCase('ep-order', 'random', {
    ranks,
    handles,
    routings,
    steps: draw(1, 4),
    index: pick(['i32', 'i64'] as const),
    ...(quantization === undefined ? {} : { quantization }),
    ...(quantization === 'forward'
      ? {
          forward: {
            dtype: pick(['f8e4m3', 'bf16', 'f4e2m1x2'] as const),
            scales: { dtype: 'f32', perRow: draw(1, 5) },
          },
        }
      : {}),
    ...(combineQuantization === undefined ? {} : { combineQuantization }),
    values: pick(['usual', 'edges'] as const),
    renormalize: draw(0, 3) === 0,
    ids: pick(['local', 'global'] as const),
    bare: draw(0, 4) === 0,
    capture,
    pipelined,
    streams: capture ? 1 : draw(1, 2),
    ...(highThroughputOnly && draw(0, 2) === 0 ? { backward: true } : {}),
    ...(lowLatencyOnly && draw(0, 1) === 0 ? { sendOnly: true } : {}),
    config: {
      experts: draw(0, 3) === 0 ? randomPlacement(draw, experts, ranks) : experts,
      topK,
      hidden,
      dtype,
      maxTokensPerRank,
      // Each handle has a graph of its own, which keeps a context.
      contexts: capture ? handles.length : draw(1, 5),
      expand: pick(['auto', 'sender', 'receiver'] as const),
      ...(token ? { reduction: 'token' } : {}),
      ...(draw(0, 3) === 0 ? { debugFill: draw(0, 255) } : {}),
      ...(budget === 0
        ? {}
        : { receiveBudget: draw(1, 40), overflow: pick(['drop-by-source', 'drop-by-weight'] as const) }),
    },
  });
}

/** Every expert somewhere, some of them twice, in any order. */
function randomPlacement(
  draw: Draw,
  count: number,
  ranks: number,
): Exclude<EpCase['config']['experts'], number> {
  const placement: number[][] = Array.from({ length: ranks }, () => []);
  for (let expert = 0; expert < count; expert++) {
    for (let replica = draw(0, 2); replica >= 0; replica -= 2) placement[draw(0, ranks - 1)]!.unshift(expert);
    if (placement.every((list) => !list.includes(expert))) placement[draw(0, ranks - 1)]!.push(expert);
  }
  return { count, placement, replicaRule: draw(0, 1) === 0 ? 'by-token' : 'local-first' };
}
