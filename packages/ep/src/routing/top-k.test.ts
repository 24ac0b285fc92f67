// SPDX-License-Identifier: Apache-2.0
// The chosen experts and their weights equal those of a router written out naively.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type TopKInput, topK } from './top-k.js';

/** One token, by sorting everything. */
function naive(scores: readonly number[], input: Omit<TopKInput, 'scores' | 'experts'>): [number, number][] {
  const { k, scoring = 'softmax', groups, bias, renormalize = scoring === 'sigmoid', scale = 1 } = input;
  const largest = Math.max(...scores);
  const powers = scores.map((s) => Math.exp(s - largest));
  const total = powers.reduce((a, b) => a + b, 0);
  const weights =
    scoring === 'sigmoid'
      ? scores.map((s) => 1 / (1 + Math.exp(-s)))
      : scoring === 'softmax'
        ? powers.map((p) => p / total)
        : [...scores];
  const choice = weights.map((w, e) => w + (bias?.[e] ?? 0));
  let allowed = scores.map((_, e) => e);
  if (groups !== undefined) {
    const size = scores.length / groups.count;
    const scoreOf = (g: number): number => {
      const sorted = choice.slice(g * size, (g + 1) * size).sort((a, b) => b - a);
      return groups.scoreOf === 'max' || size === 1 ? sorted[0]! : sorted[0]! + sorted[1]!;
    };
    const best = Array.from({ length: groups.count }, (_, g) => g)
      .sort((a, b) => scoreOf(b) - scoreOf(a) || a - b)
      .slice(0, groups.limit);
    allowed = allowed.filter((e) => best.includes(Math.floor(e / size)));
  }
  const chosen = allowed.sort((a, b) => choice[b]! - choice[a]! || a - b).slice(0, k);
  const sum = chosen.reduce((a, e) => a + weights[e]!, 0);
  return chosen.map((e) => [e, Math.fround((weights[e]! / (renormalize && sum !== 0 ? sum : 1)) * scale)]);
}

const value = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.double({ min: -8, max: 8, noNaN: true }));

describe('topK', () => {
  it('equals the naive router', () => {
    const input = fc
      .record({
        size: fc.integer({ min: 1, max: 4 }),
        count: fc.integer({ min: 1, max: 4 }),
        tokens: fc.integer({ min: 0, max: 3 }),
        scoring: fc.constantFrom('softmax' as const, 'sigmoid' as const, 'none' as const),
        scoreOf: fc.constantFrom(undefined, 'max' as const, 'top2-sum' as const),
        grouped: fc.boolean(),
        biased: fc.boolean(),
        renormalize: fc.option(fc.boolean(), { nil: undefined }),
        scale: fc.constantFrom(undefined, 2.5),
        values: fc.array(value, { minLength: 80, maxLength: 80 }),
        pick: fc.nat(1000),
      })
      .map(({ size, count, tokens, grouped, biased, scoreOf, values, pick, ...rest }) => {
        const experts = size * count;
        const limit = 1 + (pick % count);
        const k = 1 + (pick % (grouped ? limit * size : experts));
        return {
          ...rest,
          experts,
          k,
          scores: values.slice(0, tokens * experts),
          bias: biased ? values.slice(-experts) : undefined,
          groups: grouped ? { count, limit, scoreOf } : undefined,
        };
      });
    fc.assert(
      fc.property(input, (options) => {
        const { idx, weights, tokens } = topK(options);
        for (let t = 0; t < tokens; t++) {
          const row = options.scores.slice(t * options.experts, (t + 1) * options.experts);
          const at = [t * options.k, (t + 1) * options.k] as const;
          const got = Array.from(idx.slice(...at), (e, i) => [e, weights[at[0] + i]]);
          expect(got).toEqual(naive(row, options));
        }
      }),
      { numRuns: 300 },
    );
  });

  it('routes as DeepSeek-V3: bias for the choice only, two best per group, weights of the chosen sum to the scale', () => {
    const scores = [5, -5, 1, 1, 0.9, 0.9, -9, -9];
    const bias = [0, 0, 0, 0, 0, 0.5, 0, 0];
    const groups = { count: 4, limit: 2 };
    const { idx, weights } = topK({ scores, experts: 8, k: 3, scoring: 'sigmoid', bias, groups, scale: 2.5 });
    // Groups score 1.00, 1.46, 1.92, 0.00: the two in the middle stay although expert 0 is the best of all.
    expect([...idx]).toEqual([5, 2, 3]);
    expect(weights.reduce((a, b) => a + b)).toBeCloseTo(2.5, 5);
    expect(weights[0]).toBeLessThan(weights[1]!);
  });

  it('gives equal scores to lower ids', () => {
    expect([...topK({ scores: new Float32Array(6), experts: 6, k: 4 }).idx]).toEqual([0, 1, 2, 3]);
  });

  it('leaves weights that are all 0', () => {
    expect([
      ...topK({ scores: [0, 0], experts: 2, k: 2, scoring: 'none', renormalize: true }).weights,
    ]).toEqual([0, 0]);
  });

  it.each<[string, Partial<TopKInput>]>([
    ['k', { k: 5 }],
    ['k', { k: 0 }],
    ['k', { k: 3, groups: { count: 2, limit: 1 } }],
    ['experts', { experts: 0 }],
    ['scores', { scores: [1, 2, 3] }],
    ['scores[0, 1]', { scores: [1, Number.NaN, 2, 3] }],
    ['scores of token 0', { scores: [1, Number.POSITIVE_INFINITY, 2, 3] }],
    ['scoring', { scoring: 'max' as never }],
    ['bias', { bias: [1] }],
    ['bias[2]', { bias: [1, 2, Number.NaN, 1] }],
    ['scale', { scale: Number.NaN }],
    ['groups.count', { groups: { count: 3, limit: 1 } }],
    ['groups.limit', { groups: { count: 2, limit: 3 } }],
    ['groups.scoreOf', { groups: { count: 2, limit: 1, scoreOf: 'mean' as never } }],
  ])('refuses a wrong %s', (field, change) => {
    expect(() => topK({ scores: [1, 2, 3, 4], experts: 4, k: 1, ...change })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field }),
    );
  });
});
