// SPDX-License-Identifier: Apache-2.0
// Moves are as few and as long as the shards allow, and exact beyond 2^32.

import { shard } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { planOf } from './plan-of.test-util.js';
import { checked } from './simulate-plan.test-util.js';

describe('createPlan', () => {
  it('makes whole-row shards one contiguous move each', () => {
    const plan = checked(
      planOf([64, 32, 4], [{ tp: 4 }, { tp: shard(0) }], [{ tp: 2 }, { tp: shard(0) }, 4]),
    );
    const { sends } = plan.program(1);
    expect(sends.length).toBe(1);
    expect([sends.peer[0], sends.inner[0], [...sends.counts]]).toEqual([4, 16 * 32 * 4, [1, 1, 1]]);
    expect(sends.destinationOffset[0]).toBe(16 * 32 * 4);
  });

  it('makes a column of a row shard one strided move', () => {
    const plan = checked(planOf([64, 32], [{ tp: 4 }, { tp: shard(0) }], [{ tp: 2 }, { tp: shard(1) }, 4]));
    const { sends } = plan.program(0);
    expect(sends.length).toBe(2);
    expect([...sends.inner]).toEqual([16, 16]);
    expect([...sends.counts]).toEqual([1, 1, 16, 1, 1, 16]);
    expect([...sends.sourceStrides]).toEqual([0, 0, 32, 0, 0, 32]);
    expect([...sends.destinationStrides]).toEqual([0, 0, 16, 0, 0, 16]);
  });

  it('moves eight dimensions with few moves', () => {
    const shape = [2, 3, 2, 4, 2, 3, 2, 4];
    const plan = checked(
      planOf(
        shape,
        [
          { a: 2, b: 2 },
          { a: shard(0), b: shard(3) },
        ],
        [{ a: 3, b: 2 }, { a: shard(5), b: shard(7) }, 4],
      ),
    );
    expect(plan.program(0).sends.length).toBe(6);
  });

  it('plans offsets and sizes beyond 2^32 exactly', () => {
    const plan = planOf(
      [3 * 2 ** 20, 2 ** 16],
      [{ tp: 3 }, { tp: shard(0) }],
      [{ tp: 2 }, { tp: shard(1) }, 3],
      { dtype: 'f32' },
    );
    const { sends } = plan.program(2);
    const rowBytes = 2 ** 18;
    expect(plan.totals.wireBytes).toBe(3 * 2 ** 20 * rowBytes);
    expect(sends.destinationOffset[0]).toBe((2 * 2 ** 20 * rowBytes) / 2);
    expect(sends.sourceOffset[1]).toBe(rowBytes / 2);
    expect([...sends.counts]).toEqual([1, 1, 2 ** 20, 1, 1, 2 ** 20]);
    const cut = planOf([2 ** 37], [{ dp: 2 }, {}], [{ dp: 3 }, {}, 2]);
    const rank1 = cut.program(1).sends;
    expect(rank1.sourceOffset[0]).toBe(2 ** 36);
    expect(rank1.inner[0]).toBe(2 ** 36);
    expect(cut.totals.maxRankBytes).toBe(1.5 * 2 ** 37);
  });
});
