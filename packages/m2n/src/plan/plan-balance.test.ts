// SPDX-License-Identifier: Apache-2.0
// Source replicas share what they send, within a percent, cut where memory likes it.

import { layout, mesh, type Placement, shard } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPlan } from './create-plan.js';
import { planOf } from './plan-of.test-util.js';
import type { TensorRequest } from './plan-request.js';
import { checked, cluster } from './simulate-plan.test-util.js';

describe('createPlan', () => {
  it('uses every source replica and sends each whole destinations', () => {
    const plan = checked(planOf([256, 64], [{ dp: 4, tp: 2 }, { tp: shard(0) }], [{ dp: 8 }, {}, 8]));
    for (let rank = 0; rank < 8; rank++) expect(plan.program(rank).sends.length).toBe(2);
    expect(plan.totals.maxRankBytes).toBe(plan.totals.meanRankBytes);
  });

  it('cuts large demand evenly and at 128 bytes when it does not divide', () => {
    const plan = checked(planOf([512, 1000], [{ dp: 3 }, {}], [{ dp: 4 }, {}, 3]));
    const { maxRankBytes, meanRankBytes } = plan.totals;
    expect(maxRankBytes).toBeLessThanOrEqual(1.01 * meanRankBytes);
    for (let rank = 0; rank < 3; rank++) {
      const { sends } = plan.program(rank);
      for (const offset of sends.destinationOffset) expect(offset % 128).toBe(0);
    }
  });

  it('keeps rows whole or cuts them at 128 bytes when a strided cell is cut', () => {
    const plan = checked(planOf([300, 2000], [{ dp: 3 }, {}], [{ tp: 2 }, { tp: shard(1) }, 3]));
    expect(plan.totals.maxRankBytes).toBeLessThanOrEqual(1.01 * plan.totals.meanRankBytes);
  });

  it.each([
    ['one domain', undefined],
    ['domains of 8', cluster(24, 8, 8)],
    ['domains of 4', cluster(24, 4, 4)],
  ])('balances a model over its source replicas within a percent: %s', (_, topology) => {
    const side = (
      axes: Record<string, number>,
      startRank: number,
      shape: number[],
      placements: Record<string, Placement>,
    ) => layout({ shape, dtype: 'bf16', mesh: mesh(axes, { startRank }), placements });
    const list: TensorRequest[] = [];
    for (let layer = 0; layer < 6; layer++) {
      const add = (name: string, shape: number[], dim: number | undefined) => {
        const placements = dim === undefined ? {} : { tp: shard(dim) };
        list.push({
          name: `${layer}.${name}`,
          source: side({ dp: 4, tp: 4 }, 0, shape, placements),
          destination: side({ dp: 4, tp: 2 }, 16, shape, placements),
        });
      };
      add('norm', [1024], undefined);
      add('up', [768, 256], 0);
      add('down', [256, 768], 1);
      add('bias', [77], undefined);
    }
    const plan = createPlan({ tensors: list, cacheEntries: 0, ...(topology ? { topology } : {}) });
    const { maxRankBytes, meanRankBytes, wireBytes, lowerBoundBytes } = plan.totals;
    expect(maxRankBytes).toBeLessThanOrEqual(1.01 * meanRankBytes);
    expect(wireBytes).toBe(lowerBoundBytes);
  });

  it('balances any homogeneous layouts within a percent or one piece of 64 KiB', () => {
    const size = fc.tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 300 }));
    const ways = fc.record({
      replicas: fc.integer({ min: 1, max: 7 }),
      tp: fc.constantFrom(1, 2, 3),
      to: fc.integer({ min: 1, max: 9 }),
      toTp: fc.constantFrom(1, 2, 6),
      sizes: fc.array(fc.tuple(size, fc.boolean(), fc.integer({ min: 1, max: 5 })), {
        minLength: 1,
        maxLength: 6,
      }),
    });
    fc.assert(
      fc.property(ways, ({ replicas, tp, to, toTp, sizes: list }) => {
        const side = (axes: Record<string, number>, startRank: number, shape: number[], dim: number) =>
          layout({
            shape,
            dtype: 'bf16',
            mesh: mesh(axes, { startRank }),
            placements: { tp: shard(dim, 'even') },
          });
        const requests = list.flatMap(([[rows, columns], byRow, count], i) =>
          Array.from({ length: count }, (_, k): TensorRequest => {
            const shape = [rows * 6, columns * 6];
            const source = side({ dp: replicas, tp }, 0, shape, byRow ? 0 : 1);
            return {
              name: `${i}.${k}`,
              source,
              destination: side({ dp: to, tp: toTp }, replicas * tp, shape, 0),
            };
          }),
        );
        const { maxRankBytes, meanRankBytes, wireBytes, lowerBoundBytes } = createPlan({
          tensors: requests,
          cacheEntries: 0,
        }).totals;
        expect(wireBytes).toBe(lowerBoundBytes);
        expect(maxRankBytes).toBeLessThanOrEqual(Math.max(1.01 * meanRankBytes, 64 * 1024));
      }),
      { numRuns: 200 },
    );
  });
});
