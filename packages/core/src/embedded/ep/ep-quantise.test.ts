// SPDX-License-Identifier: Apache-2.0
// Rows that change on their way: fp8 in three recipes, forwarded bytes with scales, fp8 combine, against scalar arithmetic.

import { describe, expect, it } from 'vitest';
import type { EpLayout } from '../../contract/index.js';
import { inWorld, ok } from '../harness.test-util.js';
import { dispatchCall, enqueueStep, freeSteps, routeCall } from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random, randomRouting } from './ep-data.test-util.js';
import { combineToken, decode, encode, quantise, type Routing, receive } from './ep-oracle.test-util.js';
import { EpWorld, placementOf, rowBytesOf, type Shape } from './ep-world.test-util.js';

const shape: Shape = { ranks: 3, experts: 6, topK: 3, hidden: 384, dtype: 'bf16', maxTokens: 5 };

/** Rows whose blocks hold what scales stumble over. */
function awkwardRows(of: Shape, count: number, next: () => number): Uint8Array {
  const values = Float32Array.from(
    { length: count * of.hidden },
    () => (next() - 0.5) * 2 ** (next() * 40 - 20),
  );
  const blocks = (count * of.hidden) / 32;
  const fill = (block: number, value: (i: number) => number): void => {
    for (let i = 0; i < 32; i++) values[(block % blocks) * 32 + i] = value(i);
  };
  for (let row = 0; row < count; row++) {
    const first = (row * of.hidden) / 32;
    fill(first, (i) => [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1, -0, 3e38][i % 6]!);
    for (let block = 4; block < 8; block++) fill(first + block, () => (row % 2 === 0 ? 0 : 2 ** -140));
    fill(first + 8, (i) => (i % 2 === 0 ? 448 * 2 ** -9 : -(2 ** -30)));
    fill(first + 9, () => Number.NaN);
  }
  return encode(of.dtype, values);
}

async function quantised(
  layout: EpLayout,
  recipe: 'fp8' | 'fp8-pow2' | 'mxfp8',
  of: Shape = shape,
): Promise<void> {
  await inWorld(of.ranks, {}, async (test) => {
    const world = await EpWorld.open(test, of);
    const next = random(31);
    const handles = world.handles(layout);
    const rules = { placement: placementOf(of) };
    const routings = world.streams.map(() => randomRouting(of, next));
    const rows = routings.map(({ tokens }) => awkwardRows(of, tokens, next));
    const scaleBytes = of.hidden / 32;
    const outs = handles.map((handle, rank) => {
      const { tokens, ids, weights } = routings[rank]!;
      const want = receive(of, layout, rules, routings, rank);
      const outRows =
        layout === 'flat' || layout === 'packed' ? want.rows : world.local(rank) * of.ranks * of.maxTokens;
      const out = world.allocate(rank, outRows * of.hidden);
      const scales = world.allocate(rank, outRows * scaleBytes);
      ok(
        test.runtime,
        world.ep.enqueueRoute(
          handle,
          world.streams[rank]!,
          routeCall({ tokens, topkIdx: world.ids(rank, ids) }),
        ),
      );
      ok(
        test.runtime,
        world.ep.enqueueDispatch(
          handle,
          world.streams[rank]!,
          dispatchCall(of, {
            quantization: recipe,
            outRowBytes: of.hidden,
            scaleBytes,
            tokens: world.put(rank, rows[rank]!),
            topkWeights: world.put(rank, weights),
            outTokens: out,
            outRows,
            outScales: scales,
          }),
        ),
      );
      return { want, out, scales, outRows };
    });
    await world.finish();
    for (const { want, out, scales, outRows } of outs) {
      const codes = world.bytes(out, outRows * of.hidden);
      const stored = world.bytes(scales, outRows * scaleBytes);
      for (const { source, token, row } of want.entries) {
        const size = rowBytesOf(of);
        const values = decode(of.dtype, rows[source]!.subarray(token * size, (token + 1) * size));
        const expected = quantise(values, recipe);
        expect([...codes.subarray(row * of.hidden, (row + 1) * of.hidden)]).toEqual([...expected.codes]);
        expect([...stored.subarray(row * scaleBytes, (row + 1) * scaleBytes)]).toEqual([...expected.bytes]);
      }
    }
  });
}

describe.each(['fp8', 'fp8-pow2', 'mxfp8'] as const)('%s', (recipe) => {
  it.each(['expert-major', 'flat', 'packed'] as const)('in %s', async (layout) => {
    await quantised(layout, recipe);
  });

  it.each(['f32', 'f16'] as const)('of %s', async (dtype) => {
    await quantised('packed', recipe, { ...shape, dtype, hidden: 128 });
  });
});

it.each(['expert-major', 'rank-major', 'flat', 'packed'] as const)(
  'forwards rows and scales of any kind in %s',
  async (layout) => {
    await inWorld(2, {}, async (test) => {
      const of: Shape = { ...shape, ranks: 2, experts: 4, hidden: 32 };
      const world = await EpWorld.open(test, of);
      const next = random(8);
      const rules = { placement: placementOf(of) };
      const handles = world.handles(layout);
      const routings = world.streams.map(() => randomRouting(of, next));
      const bytes = (count: number): Uint8Array => Uint8Array.from({ length: count }, () => next() * 256);
      const rows = routings.map(({ tokens }) => bytes(tokens * 48));
      const scales = routings.map(({ tokens }) => bytes(tokens * 3));
      const outs = handles.map((handle, rank) => {
        const { tokens, ids, weights } = routings[rank]!;
        const want = receive(of, layout, rules, routings, rank);
        const outRows = {
          'expert-major': world.local(rank) * 10,
          'rank-major': 10,
          flat: want.rows,
          packed: want.rows,
        }[layout];
        const [out, outScales] = [world.allocate(rank, outRows * 48), world.allocate(rank, outRows * 3)];
        ok(
          test.runtime,
          world.ep.enqueueRoute(
            handle,
            world.streams[rank]!,
            routeCall({ tokens, topkIdx: world.ids(rank, ids) }),
          ),
        );
        ok(
          test.runtime,
          world.ep.enqueueDispatch(
            handle,
            world.streams[rank]!,
            dispatchCall(of, {
              quantization: 'forward',
              rowBytes: 48,
              outRowBytes: 48,
              scaleBytes: 3,
              tokens: world.put(rank, rows[rank]!),
              scales: world.put(rank, scales[rank]!),
              topkWeights: world.put(rank, weights),
              outTokens: out,
              outScales,
              outRows,
            }),
          ),
        );
        return { want, out, outScales, outRows };
      });
      await world.finish();
      for (const { want, out, outScales, outRows } of outs) {
        for (const { source, token, row } of want.entries) {
          expect([...world.bytes(out, outRows * 48).subarray(row * 48, row * 48 + 48)]).toEqual([
            ...rows[source]!.subarray(token * 48, token * 48 + 48),
          ]);
          expect([...world.bytes(outScales, outRows * 3).subarray(row * 3, row * 3 + 3)]).toEqual([
            ...scales[source]!.subarray(token * 3, token * 3 + 3),
          ]);
        }
      }
    });
  },
);

it.each(['expert-major', 'rank-major', 'flat', 'packed'] as const)(
  'passes fp8 payloads in %s',
  async (layout) => {
    for (const dtype of ['f32', 'bf16', 'f16'] as const) {
      const of: Shape = { ...shape, dtype, hidden: 128 };
      await inWorld(of.ranks, {}, async (test) => {
        const world = await EpWorld.open(test, of);
        const next = random(11);
        const handles = world.handles(layout);
        const done = enqueueStep(world, layout, handles, { placement: placementOf(of) }, next);
        await combineStep(world, layout, handles, done, next, { fp8: true });
        freeSteps(world, done);
      });
    }
  },
);

it('keeps fp8 payloads within 2^-4 of a value, or 2^-10 of the scale', () => {
  const next = random(4);
  const of: Shape = { ...shape, dtype: 'f32', hidden: 128 };
  for (let round = 0; round < 200; round++) {
    const row = Float32Array.from({ length: 128 }, () => (next() - 0.5) * 2 ** (next() * 20));
    const passed = decode(
      'f32',
      combineToken(of, [{ rank: 0, weight: undefined, row }], { payload: true, fp8: true }),
    );
    const scale = Math.max(...row.map(Math.abs)) / 448;
    row.forEach((value, i) => {
      expect(Math.abs(passed[i]! - value)).toBeLessThanOrEqual(Math.abs(value) * 2 ** -4 + scale * 2 ** -10);
    });
  }
});

describe('backward', () => {
  it.each(['flat', 'packed'] as const)('scatters gradients and sums them in %s', async (layout) => {
    const of: Shape = { ...shape, hidden: 24 };
    await inWorld(of.ranks, {}, async (test) => {
      const world = await EpWorld.open(test, of);
      const next = random(3);
      const handles = world.handles(layout, layout === 'packed' ? 4 : 1);
      const rules = { placement: placementOf(of), alignment: layout === 'packed' ? 4 : 1 };
      const done = enqueueStep(world, layout, handles, rules, next);
      await world.finish();
      await combineStep(world, layout, handles, done, next, { backward: true });
      const outs = handles.map((handle, rank) => {
        const out = world.allocate(rank, done[rank]!.outRows * 48);
        ok(
          test.runtime,
          world.ep.enqueueDispatch(
            handle,
            world.streams[rank]!,
            dispatchCall(of, {
              pass: 'backward',
              tokens: done[rank]!.ranges.tokens!,
              outTokens: out,
              outRows: done[rank]!.outRows,
            }),
          ),
        );
        return out;
      });
      await world.finish();
      outs.forEach((out, rank) => {
        const bytes = done[rank]!.outRows * 48;
        expect(
          Buffer.compare(world.bytes(out, bytes), world.bytes(done[rank]!.ranges.outTokens!, bytes)),
        ).toBe(0);
      });
    });
  });
});

it('renormalises weights over live entries, tells global ids, and fills unwritten rows with the debugging byte', async () => {
  const of: Shape = { ranks: 2, experts: 4, topK: 2, hidden: 8, dtype: 'f32', maxTokens: 3 };
  await inWorld(2, {}, async (test) => {
    const world = await EpWorld.open(test, of, { debugFill: 0x5c });
    const handles = world.handles('rank-major');
    const routings: Routing[] = [
      { tokens: 2, ids: Int32Array.of(3, -1, 2, 0), weights: Float32Array.of(0.3, 9, 0.1, 0.2) },
      { tokens: 1, ids: Int32Array.of(-1, -1), weights: Float32Array.of(1, 1) },
    ];
    const outs = handles.map((handle, rank) => {
      const { tokens, ids, weights } = routings[rank]!;
      const [out, outWeights, outIds] = [
        world.allocate(rank, 6 * 32),
        world.allocate(rank, 6 * 2 * 4),
        world.counter(rank, 12, 8),
      ];
      ok(
        test.runtime,
        world.ep.enqueueRoute(
          handle,
          world.streams[rank]!,
          routeCall({ tokens, topkIdx: world.ids(rank, ids) }),
        ),
      );
      ok(
        test.runtime,
        world.ep.enqueueDispatch(
          handle,
          world.streams[rank]!,
          dispatchCall(of, {
            tokens: world.put(rank, new Float32Array(tokens * 8).fill(rank + 1)),
            topkWeights: world.put(rank, weights),
            outTokens: out,
            outRows: 6,
            outWeights,
            outTopkIdx: outIds,
            idsLocal: false,
            renormalize: true,
          }),
        ),
      );
      return { out, outWeights, outIds };
    });
    await world.finish();
    const f = Math.fround;
    const sum = f(f(0.1) + f(0.2));
    expect(world.ints(outs[0]!.outIds, 12)).toEqual([0, -1, ...new Array(10).fill(-1)]);
    expect(world.ints(outs[1]!.outIds, 12)).toEqual([3, -1, 2, -1, ...new Array(8).fill(-1)]);
    expect([...world.floats(outs[0]!.outWeights, 2)]).toEqual([f(f(0.2) / sum), 0]);
    expect([...world.floats(outs[1]!.outWeights, 4)]).toEqual([1, 0, f(f(0.1) / sum), 0]);
    expect(
      world
        .bytes(outs[1]!.out, 192)
        .subarray(64)
        .every((byte) => byte === 0x5c),
    ).toBe(true);
    expect(
      world
        .bytes(outs[0]!.outWeights, 48)
        .subarray(8)
        .every((byte) => byte === 0x5c),
    ).toBe(true);
  });
});
