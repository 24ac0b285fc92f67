// SPDX-License-Identifier: Apache-2.0
// Rows and scales that the caller quantised arrive as the bytes that they were.

import { expect, it } from 'vitest';
import { inWorld } from '../harness.test-util.js';
import { dispatchCall, routeCall } from './ep-calls.test-util.js';
import { random, randomRouting } from './ep-data.test-util.js';
import { receive } from './ep-oracle.test-util.js';
import { EpWorld, placementOf, type Shape } from './ep-world.test-util.js';

it.each(['expert-major', 'rank-major', 'flat', 'packed'] as const)(
  'forwards rows and scales of any kind in %s',
  async (layout) => {
    await inWorld(2, {}, async (test) => {
      const of: Shape = { ranks: 2, experts: 4, topK: 3, hidden: 32, dtype: 'bf16', maxTokens: 5 };
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
        world.route(rank, handle, routeCall({ tokens, topkIdx: world.ids(rank, ids) }));
        world.dispatch(
          rank,
          handle,
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
