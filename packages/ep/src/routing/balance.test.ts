// SPDX-License-Identifier: Apache-2.0
// Statistics count every entry once, and placements from them are valid, deterministic and no worse than even ones.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expertMapOf } from '../config/expert-map.js';
import { placeExperts } from './place-experts.js';
import { routingBalance } from './routing-balance.js';
import { spreadOf } from './spread.js';

describe('routingBalance', () => {
  it('counts experts, ranks, rows and what is not routed', () => {
    const topkIdx = [
      [0, 1, 2, -1],
      [3, 0, -1, -1],
    ];
    const { expert, rank, rows, dropped, entries } = routingBalance({ topkIdx, topK: 2, experts: 4 });
    expect([...expert.load]).toEqual([2, 1, 1, 1]);
    expect([...rank.load]).toEqual([3, 2]);
    expect([...rows.load]).toEqual([2, 2]);
    expect([dropped, entries]).toEqual([3, 8]);
    expect(rank.maxOverMean).toBe(1.2);
  });

  it('takes bigints, and spreads over replicas by the rule of the group', () => {
    const experts = { count: 1, placement: [[0], [0]] };
    const ids = [BigInt64Array.from([0n, 0n]), BigInt64Array.from([0n])];
    expect([...routingBalance({ topkIdx: ids, topK: 1, experts }).physical.load]).toEqual([1, 2]);
    const local = { ...experts, replicaRule: 'local-first' as const };
    expect([...routingBalance({ topkIdx: ids, topK: 1, experts: local }).rank.load]).toEqual([2, 1]);
  });

  it('refuses ids that are none', () => {
    expect(() => routingBalance({ topkIdx: [[4]], topK: 1, experts: 4 })).toThrow(/topkIdx\[0\]\[0\]/);
    expect(() => routingBalance({ topkIdx: [[1, 2, 3]], topK: 2, experts: 4 })).toThrow(/topkIdx\[0\]/);
  });
});

describe('spreadOf', () => {
  it('is even, lopsided or empty', () => {
    expect(spreadOf(Float64Array.of(2, 2))).toMatchObject({
      maxOverMean: 1,
      coefficientOfVariation: 0,
      entropy: 1,
    });
    expect(spreadOf(Float64Array.of(4, 0))).toMatchObject({
      maxOverMean: 2,
      coefficientOfVariation: 1,
      entropy: 0,
    });
    expect(spreadOf(Float64Array.of(0, 0))).toMatchObject({ mean: 0, maxOverMean: 1, entropy: 1 });
  });
});

describe('placeExperts', () => {
  it('gives spare slots to the most loaded, and packs the heaviest first', () => {
    const { experts, rankLoad } = placeExperts({ load: [100, 10, 40, 10], ranks: 2, slotsPerRank: 3 });
    // Expert 0 has 50 per replica after the first spare slot and is on every rank; the second goes to expert 2.
    expect(experts.placement).toEqual([
      [0, 1, 2],
      [0, 2, 3],
    ]);
    expect(rankLoad.reduce((a, b) => a + b)).toBeCloseTo(160);
  });

  it('is a placement of every expert, with no more replicas than ranks, the same every time', () => {
    const input = fc
      .record({
        ranks: fc.integer({ min: 1, max: 6 }),
        slotsPerRank: fc.integer({ min: 1, max: 5 }),
        load: fc.array(fc.nat(1000), { minLength: 1, maxLength: 30 }),
      })
      .map(({ load, ...rest }) => ({ ...rest, load: load.slice(0, rest.ranks * rest.slotsPerRank) }));
    fc.assert(
      fc.property(input, ({ load, ranks, slotsPerRank }) => {
        const { experts, rankLoad } = placeExperts({ load, ranks, slotsPerRank });
        expect(placeExperts({ load, ranks, slotsPerRank }).experts).toEqual(experts);
        const map = expertMapOf(experts, ranks);
        expect(map.placement.every((local) => local.length === slotsPerRank)).toBe(true);
        const total = load.reduce((a, b) => a + b, 0);
        expect(rankLoad.reduce((a, b) => a + b)).toBeCloseTo(total, 6);
        if (slotsPerRank <= load.length)
          expect(map.replicas.every((replicas) => replicas.length <= ranks)).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  it('halves the load of one hot expert', () => {
    const load = [800, 100, 100, 100, 100, 100, 100, 100];
    const even = Math.max(800 + 100, 200);
    expect(Math.max(...placeExperts({ load, ranks: 4, slotsPerRank: 3 }).rankLoad)).toBeLessThan(even / 2);
  });

  it.each<[string, Parameters<typeof placeExperts>[0]]>([
    ['load.length', { load: [1, 2, 3], ranks: 1, slotsPerRank: 2 }],
    ['load[1]', { load: [1, -2], ranks: 1, slotsPerRank: 2 }],
    ['ranks', { load: [1], ranks: 0, slotsPerRank: 2 }],
  ])('refuses a wrong %s', (field, input) => {
    expect(() => placeExperts(input)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field }),
    );
  });
});
