// SPDX-License-Identifier: Apache-2.0
// Plans move what they promise: every wanted element once, at the lower bound, for any layouts, sizes and ranks.

import { blockCyclic, interleaved, replicate, shard, sizes, strided } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPlan } from './create-plan.js';
import { planOf } from './plan-of.test-util.js';
import { tensors, topologies, worldSize } from './random-tensors.test-util.js';
import { checked } from './simulate-plan.test-util.js';

describe('createPlan', () => {
  it('moves every wanted element exactly once, at the lower bound, for any layouts and topology', () => {
    fc.assert(
      fc.property(tensors('one'), tensors('two'), topologies, (one, two, places) => {
        const request = { tensors: [one, two], worldSize, topology: places, cacheEntries: 0 };
        const { wireBytes, lowerBoundBytes } = checked(createPlan(request)).totals;
        expect(wireBytes).toBe(lowerBoundBytes);
      }),
      { numRuns: 300 },
    );
  });

  it('plans many tensors of one class as it plans them alone', () => {
    fc.assert(
      fc.property(tensors('one'), fc.integer({ min: 2, max: 7 }), topologies, (one, count, places) => {
        const list = Array.from({ length: count }, (_, i) => ({ ...one, name: `w${i}` }));
        checked(createPlan({ tensors: list, worldSize, topology: places, cacheEntries: 0 }));
      }),
      { numRuns: 150 },
    );
  });

  it('copies locally what a colocated rank has', () => {
    const plan = checked(
      planOf([8, 16], [{ tp: 4 }, { tp: shard(0) }], [{ dp: 2, tp: 2 }, { tp: shard(0) }]),
    );
    expect(plan.totals.localBytes).toBe(64);
    expect(plan.totals.wireBytes).toBe(2 * 128 - 64);
    const same = checked(planOf([8, 16], [{ tp: 4 }, { tp: shard(0) }], [{ tp: 4 }, { tp: shard(0) }]));
    expect(same.totals.wireBytes).toBe(0);
  });

  it('takes nested, uneven, interleaved and block-cyclic shards', () => {
    checked(
      planOf(
        [10, 6],
        [
          { a: 2, b: 2 },
          { a: shard(0), b: shard(0) },
        ],
        [{ a: 3 }, { a: shard(0, blockCyclic(2)) }, 4],
      ),
    );
    checked(
      planOf(
        [12, 6],
        [{ a: 2 }, { a: shard(0, interleaved([6, 4, 2])) }],
        [{ a: 3 }, { a: shard(0, strided(2)) }, 2],
      ),
    );
    checked(
      planOf(
        [9],
        [{ a: 3 }, { a: shard(0, sizes([0, 7, 2])) }],
        [{ a: 2 }, { a: shard(0, blockCyclic(1)) }, 3],
      ),
    );
    checked(
      planOf(
        [97, 5],
        [{ a: 2 }, { a: shard(0, blockCyclic(3)) }],
        [{ a: 5 }, { a: shard(0, blockCyclic(2)) }, 2],
      ),
    );
  });

  it('takes empty plans, empty tensors, scalars, single ranks and spectators', () => {
    const empty = checked(createPlan({ tensors: [], worldSize: 3 }));
    expect(empty.totals.wireBytes).toBe(0);
    expect(empty.program(2).sends.length).toBe(0);
    checked(planOf([0, 4], [{ tp: 2 }, { tp: shard(0) }], [{ tp: 2 }, { tp: shard(1) }, 2]));
    const scalar = checked(planOf([], [{}, {}], [{ dp: 3 }, {}, 0], { dtype: 'f32' }));
    expect(scalar.totals.wireBytes).toBe(8);
    expect(checked(planOf([5], [{}, {}], [{}, {}])).totals.localBytes).toBe(5);
    const watched = checked(planOf([4], [{ a: 1 }, {}, 1], [{ a: 1 }, { a: replicate() }, 3]));
    expect(watched.worldSize).toBe(4);
    for (const rank of [0, 2]) {
      const { sends, receivePeers } = watched.program(rank);
      expect([sends.length, receivePeers.length]).toEqual([0, 0]);
    }
  });
});
