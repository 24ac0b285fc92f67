// SPDX-License-Identifier: Apache-2.0
// Variants of outputs: weights that sum to one again, global ids, and a fill of what nobody writes.

import { expect, it } from 'vitest';
import { inWorld } from '../harness.test-util.js';
import { dispatchCall, routeCall } from './ep-calls.test-util.js';
import type { Routing } from './ep-oracle.test-util.js';
import { EpWorld, type Shape } from './ep-world.test-util.js';

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
      world.route(rank, handle, routeCall({ tokens, topkIdx: world.ids(rank, ids) }));
      world.dispatch(
        rank,
        handle,
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
