// SPDX-License-Identifier: Apache-2.0
// Plans move what they promise: every wanted element once, at the lower bound, balanced, the same on every rank.

import {
  blockCyclic,
  interleaved,
  layout,
  mesh,
  type Placement,
  replicate,
  shard,
  sizes,
  strided,
  type Topology,
} from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPlan } from './create-plan.js';
import type { TensorRequest } from './plan-request.js';
import { tensors, topologies, worldSize } from './random-tensors.test-util.js';
import { checked, cluster } from './simulate-plan.test-util.js';
import type { TransferPlan } from './transfer-plan.js';

/** One tensor between two meshes of consecutive ranks. */
function planOf(
  shape: readonly number[],
  from: readonly [axes: Record<string, number>, placements: Record<string, Placement>, startRank?: number],
  to: readonly [axes: Record<string, number>, placements: Record<string, Placement>, startRank?: number],
  more: {
    readonly topology?: Topology;
    readonly names?: readonly string[];
    readonly dtype?: 'u8' | 'f32' | 'bf16';
  } = {},
): TransferPlan {
  const { names = ['w'], dtype = 'u8', ...rest } = more;
  const side = ([axes, placements, startRank = 0]: typeof from) =>
    layout({ shape, dtype, mesh: mesh(axes, { startRank }), placements });
  const source = side(from);
  const destination = side(to);
  const list: TensorRequest[] = names.map((name) => ({ name, source, destination }));
  return createPlan({ tensors: list, cacheEntries: 0, ...rest });
}

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

  it('lets one copy enter a domain, shared by its members, who forward it', () => {
    const plan = checked(
      planOf([512, 1024], [{ dp: 2 }, {}], [{ dp: 4 }, {}, 4], { topology: cluster(8, 4, 4) }),
    );
    expect(plan.totals.interDomainBytes).toBe(512 * 1024);
    expect(plan.totals.forwardedBytes).toBe(3 * 512 * 1024);
    for (let rank = 4; rank < 8; rank++) {
      const { sends, forwardPeers } = plan.program(rank);
      expect(forwardPeers.length).toBe(3);
      expect(sends.inner.reduce((sum, bytes) => sum + bytes, 0)).toBe((3 * 512 * 1024) / 4);
    }
  });

  it('keeps to the rail of the receiver when that is balanced', () => {
    const plan = checked(
      planOf([512, 1024], [{ dp: 4 }, {}], [{ dp: 4 }, {}, 4], { topology: cluster(8, 4, 4) }),
    );
    expect(plan.totals.bytesByLink.rail).toBe(512 * 1024);
    expect(plan.totals.bytesByLink.network).toBe(0);
  });

  it('gives small cells of a class to the members of a domain in turn', () => {
    const names = Array.from({ length: 8 }, (_, i) => `norm${i}`);
    const plan = checked(
      planOf([64], [{ dp: 1 }, {}], [{ dp: 4 }, {}, 4], { topology: cluster(8, 4, 4), names }),
    );
    for (let rank = 4; rank < 8; rank++) expect(plan.program(rank).sends.length).toBe(6);
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
