// SPDX-License-Identifier: Apache-2.0
// The oracle itself, against numbers worked out by hand.

import { describe, expect, it } from 'vitest';
import { drawElements, wordsOf } from '../run/step-data.js';
import { decodeRow, encodeRow } from './floats.js';
import { dequantiseRow, quantiseRow } from './quantise.js';
import { type Received, type RowRules, receivedBy } from './received.js';
import { entriesOf, type Placement, type Routing, renormalised } from './routing.js';
import { type SumRules, sumTerms } from './sum-rows.js';

const everyone: Placement = {
  experts: [
    [0, 1],
    [2, 3],
  ],
  localFirst: false,
  members: [0, 1],
};
const rules: RowRules = {
  layout: 'flat',
  ranks: 2,
  maxTokens: 4,
  alignment: 1,
  budget: 0,
  overflow: 'error',
};

function routing(ids: readonly number[], weights: readonly number[] = ids.map(() => 0.5)): Routing {
  return { tokens: ids.length / 2, ids: Int32Array.from(ids), weights: Float32Array.from(weights) };
}

/** Rank 0: tokens to (0, 2), (1, 0), (-1, 3); rank 1: token to (2, 3). */
const routings = [routing([0, 2, 1, 0, -1, 3], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), routing([2, 3], [0.7, 0.8])];
const entries = entriesOf(everyone, 2, routings);

function received(rank: number, change: Partial<RowRules> = {}): Received {
  return receivedBy(rank, 2, entries, { ...rules, ...change });
}

const rowsOf = ({ rows }: Received) => rows.map(({ row, source, token }) => [row, source, token]);

describe('rows', () => {
  it('of flat: one per token and rank', () => {
    expect(rowsOf(received(0))).toEqual([
      [0, 0, 0],
      [1, 0, 1],
    ]);
    expect(rowsOf(received(1))).toEqual([
      [0, 0, 0],
      [1, 0, 2],
      [2, 1, 0],
    ]);
    expect(received(1)).toMatchObject({ total: 3, demand: 3, perExpert: [2, 2], perSource: [2, 1] });
  });

  it('of rank-major: from the start of each source', () => {
    expect(rowsOf(received(1, { layout: 'rank-major' }))).toEqual([
      [0, 0, 0],
      [1, 0, 2],
      [4, 1, 0],
    ]);
  });

  it('of expert-major: from the start of each expert', () => {
    const rows = received(0, { layout: 'expert-major' });
    expect(rowsOf(rows)).toEqual([
      [0, 0, 0],
      [8, 0, 1],
      [1, 0, 1],
    ]);
    expect(rows).toMatchObject({ firstRow: [0, 8], perExpert: [2, 1], perSource: [3, 0] });
  });

  it('of packed: zones that are padded', () => {
    const rows = received(1, { layout: 'packed', alignment: 4 });
    expect(rowsOf(rows)).toEqual([
      [0, 0, 0],
      [4, 0, 2],
      [1, 1, 0],
      [5, 1, 0],
    ]);
    expect(rows).toMatchObject({
      total: 8,
      demand: 8,
      firstRow: [0, 4],
      padding: [2, 3, 6, 7],
      perSource: [2, 2],
    });
  });

  it('beyond a budget: by source, and by weight', () => {
    const limited = { budget: 2 } as const;
    expect(rowsOf(received(1, { ...limited, overflow: 'drop-by-source' }))).toEqual([
      [0, 0, 0],
      [1, 0, 2],
    ]);
    const kept = received(1, { ...limited, overflow: 'drop-by-weight' });
    expect(rowsOf(kept)).toEqual([
      [0, 0, 2],
      [1, 1, 0],
    ]);
    expect(kept).toMatchObject({ total: 2, demand: 3 });
  });

  it('to replicas: in turn, at home first, and only to members', () => {
    const twice: Placement = { experts: [[0], [0, 1]], localFirst: false, members: [0, 1] };
    const ranks = (placement: Placement) =>
      entriesOf(placement, 2, [routing([0, -1, 0, -1]), routing([0, 1, 0, -1])]).map(({ rank }) => rank);
    expect(ranks(twice)).toEqual([0, 1, 1, 1, 0]);
    expect(ranks({ ...twice, localFirst: true })).toEqual([0, 0, 1, 1, 1]);
    expect(ranks({ ...twice, members: [0] })).toEqual([0, 0]);
  });
});

describe('weights', () => {
  it('are divided by the sum of what is live', () => {
    const [first, , , , alone] = renormalised(entries);
    expect(first!.weight).toBe(
      Math.fround(Math.fround(0.1) / Math.fround(Math.fround(0.1) + Math.fround(0.2))),
    );
    expect(alone!.weight).toBe(1);
  });
});

describe('sums', () => {
  const sums: SumRules = { dtype: 'bf16', hidden: 1, reduction: 'rank', quantization: 'none' };
  const term = (rank: number, value: number, weight?: number) => ({
    rank,
    weight,
    row: Float32Array.of(value),
  });

  it('round once per rank, or once per token', () => {
    // bf16 has 8 bits: 257 becomes 256, and 256 + 1 + 1 = 258 stays.
    const terms = [term(0, 256), term(0, 1), term(1, 1)];
    expect(encodeRow('bf16', sumTerms(terms, sums))).toEqual(encodeRow('bf16', [256]));
    expect(encodeRow('bf16', sumTerms(terms, { ...sums, reduction: 'token' }))).toEqual(
      encodeRow('bf16', [258]),
    );
  });

  it('start with their first term', () => {
    expect(Object.is(sumTerms([term(0, -0)], sums)[0], -0)).toBe(true);
    expect(Object.is(sumTerms([], sums)[0], 0)).toBe(true);
  });

  it('go by rank first and by position within a rank', () => {
    const wide: SumRules = { ...sums, dtype: 'f32' };
    const big = 2 ** 24;
    // Rank 0: 1 + 1 = 2; rank 1: 2^24. In order of position 2^24 would lose both ones.
    expect(sumTerms([term(1, big), term(0, 1), term(0, 1)], wide)[0]).toBe(big + 2);
    expect(sumTerms([term(1, big), term(0, 1), term(0, 1)], { ...wide, reduction: 'token' })[0]).toBe(big);
  });

  it('weigh before they add, each rounded to f32', () => {
    const [sum] = sumTerms([term(0, 3, Math.fround(1 / 3)), term(0, 1, 2)], { ...sums, dtype: 'f32' });
    expect(sum).toBe(3);
  });
});

describe('quantisation', () => {
  const row = (first: number, length = 128) => new Float32Array(length).fill(0.5).fill(first, 0, 1);

  it('fp8 takes the largest magnitude to 448', () => {
    const { codes, scales } = quantiseRow('fp8', row(-896));
    expect(scales).toEqual([2]);
    expect([codes[0], codes[1]]).toEqual([0xfe, 0x28]);
  });

  it('fp8-pow2 takes the power of two above', () => {
    expect(quantiseRow('fp8-pow2', row(449)).scales).toEqual([2]);
    expect(quantiseRow('fp8-pow2', row(448)).scales).toEqual([1]);
  });

  it('mxfp8 takes the exponent of the largest less 8', () => {
    const { scaleBytes, codes } = quantiseRow('mxfp8', row(3, 32));
    expect([...scaleBytes]).toEqual([127 + 1 - 8]);
    // 3 x 2^7 = 384.
    expect(codes[0]).toBe(0x7c);
  });

  it('knows blocks of zeros, NaNs and infinities', () => {
    expect(quantiseRow('fp8', new Float32Array(128)).scales).toEqual([1]);
    expect([...quantiseRow('mxfp8', new Float32Array(32)).scaleBytes]).toEqual([0]);
    const odd = new Float32Array(128).fill(1).fill(Number.NaN, 0, 1);
    expect(quantiseRow('fp8', odd).scales).toEqual([Math.fround(1 / 448)]);
    expect(quantiseRow('fp8', odd).codes[0]).toBe(0x7f);
    const far = quantiseRow('fp8', new Float32Array(128).fill(Number.NEGATIVE_INFINITY, 0, 1));
    expect(far.codes[0]).toBe(0xfe);
  });

  it('fp8 payloads are within 2^-4 of each value plus 2^-10 of the scale', () => {
    for (let epoch = 0; epoch < 50; epoch++) {
      const values = decodeRow('f32', drawElements(wordsOf('rows', epoch), 'f32', 'usual', 0, 256));
      values.forEach((value, i) => {
        values[i] = value * 2 ** ((i * 7 + epoch) % 23);
      });
      const quantised = quantiseRow('fp8', values);
      const payload = dequantiseRow('fp8', quantised);
      for (const [i, value] of values.entries()) {
        const bound = Math.abs(value) * 2 ** -4 + quantised.scales[i >> 7]! * 2 ** -10;
        expect(Math.abs(payload[i]! - value)).toBeLessThanOrEqual(bound);
      }
    }
  });
});
