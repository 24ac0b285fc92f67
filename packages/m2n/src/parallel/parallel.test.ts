// SPDX-License-Identifier: Apache-2.0
import { NcclExtError } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parallelism } from './parallelism.js';
import { denseRanks, expertRanks } from './rank-groups.js';
import { stageOfLayer } from './stage-of-layer.js';

describe('parallelism', () => {
  it('completes what is given', () => {
    const rest = { pp: 1, dp: 1, cp: 1, tp: 1, edp: 1, ep: 1, etp: 1, ranks: 1 };
    expect(parallelism({})).toEqual(rest);
    expect(parallelism('tp=4,pp=2')).toEqual({ ...rest, tp: 4, pp: 2, etp: 4, ranks: 8 });
    expect(parallelism(' tp=2 , dp=2 ')).toEqual({ ...rest, tp: 2, dp: 2, etp: 2, edp: 2, ranks: 4 });
    expect(parallelism('ranks=2048,pp=16,ep=128')).toEqual({
      ...rest,
      ranks: 2048,
      pp: 16,
      dp: 128,
      ep: 128,
    });
    expect(parallelism('ranks=2048,tp=16')).toEqual({
      ...rest,
      ranks: 2048,
      tp: 16,
      dp: 128,
      etp: 16,
      edp: 128,
    });
    expect(parallelism('dp=2,cp=2,tp=2,ep=4')).toEqual({
      ...rest,
      dp: 2,
      cp: 2,
      tp: 2,
      ep: 4,
      edp: 2,
      ranks: 8,
    });
    expect(parallelism('tp=4,ep=2,etp=2')).toEqual({ ...rest, tp: 4, ep: 2, etp: 2, ranks: 4 });
  });

  const cases: [input: string | object, words: RegExp][] = [
    ['ranks=10,tp=4', /ranks 10 is no multiple of pp 1 x cp 1 x tp 4 = 4/],
    ['ranks=8,tp=2,dp=2', /pp 1 x dp 2 x cp 1 x tp 2 = 4, but ranks is 8/],
    ['tp=4,ep=8', /ep 8 x etp 1 = 8 does not divide the dp 1 x cp 1 x tp 4 = 4 ranks of a stage/],
    ['tp=4,ep=2,edp=4', /edp 4 x ep 2 x etp 1 = 8, but the dp 1 x cp 1 x tp 4 = 4 ranks of a stage/],
    ['tp=4,tp=2', /tp occurs twice/],
    ['tp=0', /tp must be an integer in 1\.\./],
    ['', /NAME=NUMBER/],
    ['tp', /"tp" in "tp" must be NAME=NUMBER/],
    ['xp=2', /"xp=2"/],
    ['tp=1.5', /"tp=1.5"/],
    [{ tp: 1.5 }, /tp must be an integer/],
    [{ sp: 2 }, /"sp" is no size/],
  ];
  it.each(cases)('refuses %j', (input, words) => {
    expect(() => parallelism(input)).toThrow(words);
    try {
      parallelism(input);
    } catch (error) {
      expect(NcclExtError.is(error, 'ERR_PARALLELISM')).toBe(true);
      expect((error as NcclExtError).help).toMatch(/tp/);
    }
  });
});

it('rank groups are the rows of the grids that the definition draws', () => {
  const size = fc.integer({ min: 1, max: 4 });
  fc.assert(
    fc.property(size, size, size, size, fc.nat(50), fc.nat(100), (pp, dp, cp, tp, firstRank, pick) => {
      const stage = dp * cp * tp;
      const divisors = Array.from({ length: stage }, (_, i) => i + 1).filter((n) => stage % n === 0);
      const ep = divisors[pick % divisors.length]!;
      const inner = divisors.filter((n) => (stage / ep) % n === 0);
      const etp = inner[(pick * 7) % inner.length]!;
      const side = { parallelism: parallelism({ pp, dp, cp, tp, ep, etp }), firstRank };
      let rank = firstRank;
      const dense = new Map<string, number[]>();
      for (let p = 0; p < pp; p++) {
        for (let replica = 0; replica < dp * cp; replica++) {
          for (let t = 0; t < tp; t++) {
            const key = `${p}/${t}`;
            dense.set(key, [...(dense.get(key) ?? []), rank++]);
          }
        }
      }
      for (const [key, ranks] of dense) {
        const [p, t] = key.split('/').map(Number);
        expect(denseRanks(side, p!, t!)).toEqual(ranks);
      }
      rank = firstRank;
      const experts = new Map<string, number[]>();
      for (let p = 0; p < pp; p++) {
        for (let replica = 0; replica < stage / (ep * etp); replica++) {
          for (let e = 0; e < ep; e++) {
            for (let t = 0; t < etp; t++) {
              const key = `${p}/${e}/${t}`;
              experts.set(key, [...(experts.get(key) ?? []), rank++]);
            }
          }
        }
      }
      for (const [key, ranks] of experts) {
        const [p, e, t] = key.split('/').map(Number);
        expect(expertRanks(side, p!, e!, t!)).toEqual(ranks);
      }
    }),
  );
});

it('stages take consecutive layers, as evenly as can be', () => {
  expect(Array.from({ length: 8 }, (_, layer) => stageOfLayer(layer, 8, 4))).toEqual([
    0, 0, 1, 1, 2, 2, 3, 3,
  ]);
  expect(Array.from({ length: 5 }, (_, layer) => stageOfLayer(layer, 5, 2))).toEqual([0, 0, 0, 1, 1]);
  expect(Array.from({ length: 2 }, (_, layer) => stageOfLayer(layer, 2, 4))).toEqual([0, 2]);
  expect(stageOfLayer(61, 61, 16)).toBe(15);
});
