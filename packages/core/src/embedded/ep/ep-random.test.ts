// SPDX-License-Identifier: Apache-2.0
// Random work of several handles of all layouts, with delays, any number of workers, and memory that kernels cannot reach.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { epLayouts } from '../../contract/index.js';
import { assembleBackend } from '../assemble-backend.js';
import { code, error, inWorld, ok, value } from '../harness.test-util.js';
import { BackendState } from '../host/state.js';
import { WorkerPool } from '../host/worker-pool.js';
import { Arena } from '../memory/arena.js';
import { checkDispatched, dispatchCall, enqueueStep, freeSteps, routeCall } from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random } from './ep-data.test-util.js';
import { EpWorld, placementOf, type Shape } from './ep-world.test-util.js';

it('gives what the oracle gives for random shapes, handles and delays', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        ranks: fc.integer({ min: 1, max: 6 }),
        experts: fc.integer({ min: 1, max: 20 }),
        topK: fc.integer({ min: 1, max: 8 }),
        rows: fc.integer({ min: 1, max: 9 }),
        dtype: fc.constantFrom('f32' as const, 'f16' as const, 'bf16' as const),
        maxTokens: fc.integer({ min: 1, max: 9 }),
        workers: fc.constantFrom(1, 2, 8),
        contexts: fc.integer({ min: 1, max: 5 }),
        seed: fc.integer(),
      }),
      async ({ rows, workers, contexts, seed, ...partial }) => {
        const shape: Shape = { ...partial, topK: Math.min(partial.topK, partial.experts), hidden: rows * 8 };
        await inWorld(shape.ranks, { workers }, async (test) => {
          const world = await EpWorld.open(test, shape, { contexts });
          const next = random(seed);
          const rules = { placement: placementOf(shape) };
          const all = epLayouts.map((layout) => ({
            layout,
            handles: world.handles(layout, layout === 'packed' ? 4 : 1),
          }));
          for (let round = 0; round < 5; round++) {
            for (const rank of test.ranks) test.faults.delayRank(rank, next() < 0.3 ? next() * 3 : 0);
            const chosen = all.filter(() => next() < 0.6);
            const steps = chosen.map(({ layout, handles }) =>
              enqueueStep(world, layout, handles, { ...rules, alignment: layout === 'packed' ? 4 : 1 }, next),
            );
            await world.finish();
            for (const [i, { layout, handles }] of chosen.entries()) {
              checkDispatched(world, layout, steps[i]!, layout === 'packed' ? 4 : 1);
              await combineStep(world, layout, handles, steps[i]!, next);
              freeSteps(world, steps[i]!);
            }
          }
        });
      },
    ),
    { numRuns: 12 },
  );
}, 120_000);

it.each(epLayouts)('works in blocks that kernels cannot reach, in %s', async (layout) => {
  const arena = new Arena({ kernels: false, limit: 2 ** 34 });
  const backend = assembleBackend(new BackendState(arena, new WorkerPool(arena)));
  const shape: Shape = { ranks: 3, experts: 6, topK: 3, hidden: 4480, dtype: 'bf16', maxTokens: 4 };
  await inWorld(3, { workers: 2, backend }, async (test) => {
    const world = await EpWorld.open(test, shape);
    const handles = world.handles(layout);
    const next = random(8);
    for (const fp8 of [false, true]) {
      const steps = enqueueStep(world, layout, handles, { placement: placementOf(shape) }, next);
      await world.finish();
      checkDispatched(world, layout, steps);
      await combineStep(world, layout, handles, steps, next, { fp8 });
      const plain = world.streams.map((stream, rank) => {
        const { ranges, outRows } = steps[rank]!;
        const out = world.allocate(rank, outRows * shape.hidden);
        const outScales = world.allocate(rank, (outRows * shape.hidden) / 32);
        ok(
          test.runtime,
          world.ep.enqueueDispatch(
            handles[rank]!,
            stream,
            dispatchCall(shape, {
              quantization: 'fp8',
              outRowBytes: shape.hidden,
              scaleBytes: shape.hidden / 32,
              tokens: ranges.tokens!,
              topkWeights: ranges.topkWeights!,
              outTokens: out,
              outScales,
              outRows,
            }),
          ),
        );
        return { out, outScales };
      });
      await world.finish();
      const { quantise, decode } = await import('./ep-oracle.test-util.js');
      for (const [rank, { want }] of steps.entries())
        for (const { source, token, row } of want.entries.slice(0, 6)) {
          const from = steps[source]!.tokens.subarray(
            token * shape.hidden * 2,
            (token + 1) * shape.hidden * 2,
          );
          const expected = quantise(decode('bf16', from), 'fp8');
          const { out, outScales } = plain[rank]!;
          const codes = world.bytes(out, (row + 1) * shape.hidden).subarray(row * shape.hidden);
          expect(Buffer.compare(codes, expected.codes)).toBe(0);
          const scales = world
            .bytes(outScales, ((row + 1) * shape.hidden) / 32)
            .subarray((row * shape.hidden) / 32);
          expect(Buffer.compare(scales, expected.bytes)).toBe(0);
        }
    }
  });
});

it('does not take a slow member for a lost one: a wait lasts as long as the member moves bytes', async () => {
  const shape: Shape = { ranks: 2, experts: 2, topK: 1, hidden: 7168, dtype: 'f16', maxTokens: 1024 };
  await inWorld(2, { workers: 1, timeoutMs: 20_000 }, async (test) => {
    const { runtime, faults, ranks } = test;
    const world = await EpWorld.open(test, shape, { timeoutMs: 50 });
    const handles = world.handles('flat');
    // Rank 0 receives everything, which takes it longer than the deadline of rank 1.
    const buffers = handles.map((_, rank) => ({
      topkIdx: world.ids(rank, new Int32Array(1024)),
      topkWeights: world.put(rank, new Float32Array(1024)),
      tokens: world.allocate(rank, 1024 * 7168 * 2),
      outTokens: world.allocate(rank, rank === 0 ? 2048 * 7168 : 0),
      outScales: world.allocate(rank, rank === 0 ? 2048 * 224 : 0),
    }));
    for (const rank of ranks) faults.stopRank(rank);
    handles.forEach((handle, rank) => {
      const { topkIdx, ...ranges } = buffers[rank]!;
      const stream = world.streams[rank]!;
      ok(runtime, world.ep.enqueueRoute(handle, stream, routeCall({ tokens: 1024, topkIdx })));
      const call = { quantization: 'mxfp8' as const, outRowBytes: 7168, scaleBytes: 224 };
      const dispatch = dispatchCall(shape, { ...ranges, ...call, outRows: rank === 0 ? 2048 : 0 });
      for (let i = 0; i < 3; i++) ok(runtime, world.ep.enqueueDispatch(handle, stream, dispatch));
    });
    for (const rank of ranks) faults.resumeRank(rank);
    await world.finish();
  });
});

it('ends a stopped member with a timeout that names it, and a delayed one in time', async () => {
  const shape: Shape = { ranks: 2, experts: 2, topK: 1, hidden: 8, dtype: 'bf16', maxTokens: 2 };
  await inWorld(2, { timeoutMs: 300 }, async (test) => {
    const world = await EpWorld.open(test, shape, { timeoutMs: 250 });
    const handles = world.handles('expert-major');
    const rules = { placement: placementOf(shape) };
    test.faults.delayRank(test.ranks[1]!, 20);
    enqueueStep(world, 'expert-major', handles, rules, random(1));
    await world.finish();
    test.faults.delayRank(test.ranks[1]!, 0);
    test.faults.stopRank(test.ranks[0]!);
    enqueueStep(world, 'expert-major', handles, rules, random(1));
    expect(error(await test.runtime.synchronize(world.streams[1]!))).toMatchObject({
      code: code('ERR_TIMEOUT'),
      peer: 0,
      op: 'dispatch',
    });
    test.faults.resumeRank(test.ranks[0]!);
    expect(error(await test.runtime.synchronize(world.streams[0]!))).toMatchObject({ peer: 1 });
    for (const rank of test.ranks) value(await test.runtime.disposeRank(rank));
  });
});
