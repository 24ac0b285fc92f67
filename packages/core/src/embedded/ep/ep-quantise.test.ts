// SPDX-License-Identifier: Apache-2.0
// Rows that a dispatch quantises to fp8 in three recipes, against scalar arithmetic.

import { describe, expect, it } from 'vitest';
import type { EpLayout } from '../../contract/index.js';
import { inWorld } from '../harness.test-util.js';
import { dispatchCall, routeCall } from './ep-calls.test-util.js';
import { random, randomRouting } from './ep-data.test-util.js';
import { decode, encode, quantise, receive } from './ep-oracle.test-util.js';
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
      world.route(rank, handle, routeCall({ tokens, topkIdx: world.ids(rank, ids) }));
      world.dispatch(
        rank,
        handle,
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
