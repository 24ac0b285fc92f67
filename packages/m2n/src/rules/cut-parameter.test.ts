// SPDX-License-Identifier: Apache-2.0
// What each kind of cut gives to which rank, and the heads and scales that do not fit.

import { describe, expect, it } from 'vitest';
import { refusal } from '../refusal.test-util.js';
import { partsOf, refit, rulesOf, tensor } from './small-refits.test-util.js';

describe('what rules ask for', () => {
  it('stages: first, last, every, and that of the layer', () => {
    const ranksOf = (stage: 'first' | 'last' | 'every' | undefined, name: string) => {
      const rules = rulesOf({ rules: [{ match: '*', cut: 'replicated', stage }] });
      const result = refit({ [name]: tensor(2), 'layers.3.x': tensor(1) }, rules, {
        from: { parallelism: 'pp=2' },
      });
      return partsOf(result).flatMap(({ ranks }) => ranks);
    };
    expect(ranksOf('first', 'layers.3.w')).toEqual([0]);
    expect(ranksOf('last', 'layers.0.w')).toEqual([1]);
    expect(ranksOf('every', 'w')).toEqual([0, 1]);
    expect(ranksOf(undefined, 'layers.1.w')).toEqual([0]);
    expect(ranksOf(undefined, 'layers.2.w')).toEqual([1]);
    expect(ranksOf(undefined, 'w')).toEqual([1]);
  });

  it('fused qkv and gate-up are cut by segments, and can be split into storages', () => {
    const views = {
      apart: [
        { from: ['qkv'], into: ['q', 'k', 'v'] },
        { from: ['gate_up'], into: ['gate', 'up'] },
      ],
    };
    const rules = rulesOf({
      rules: [
        { match: 'qkv', cut: 'qkv' },
        { match: 'gate_up', cut: 'gate-up' },
      ],
      views,
    });
    const config = { num_attention_heads: 4, num_key_value_heads: 2 };
    const model = { qkv: tensor(16, 3), gate_up: tensor(12, 3), __config__: config };
    const columns = [[0, 3, 3, 1]];
    expect(partsOf(refit(model, rules))).toEqual([
      {
        dims: [
          [
            [0, 4, 4, 1],
            [8, 2, 4, 2],
          ],
          columns,
        ],
        ranks: [0],
        byteOffset: 0,
      },
      {
        dims: [
          [
            [4, 4, 4, 1],
            [10, 2, 4, 2],
          ],
          columns,
        ],
        ranks: [1],
        byteOffset: 0,
      },
    ]);
    const apart = refit(model, rules, { to: { parallelism: 'tp=2', view: 'apart' } });
    const storages = apart
      .destinationStorages(3)
      .map(({ storage, shape, pieces }) => [
        storage,
        shape,
        pieces[0]!.part.dims[0]!.runs.map(({ start }) => start),
      ]);
    expect(storages).toEqual([
      ['q', [4, 3], [4]],
      ['k', [2, 3], [10]],
      ['v', [2, 3], [14]],
      ['gate', [3, 3], [3]],
      ['up', [3, 3], [9]],
    ]);
  });

  it('experts as one tensor are cut over ep and etp', () => {
    const rules = rulesOf({
      rules: [
        { match: 'w13', cut: 'gate-up', stacked: true },
        { match: 'w2', cut: 'row', stacked: true },
        { match: 'bias', cut: 'row', stacked: true },
      ],
      views: { renamed: [{ from: ['w2'], into: ['down'] }] },
    });
    const model = { w13: tensor(5, 8, 3), w2: tensor(5, 3, 4), bias: tensor(5, 3) };
    const result = refit(model, rules, { from: { parallelism: 'tp=4,ep=2,etp=2', view: 'renamed' } });
    const extents = result
      .sourceStorages(3)
      .map(({ storage, shape, pieces }) => [
        storage,
        shape,
        pieces[0]!.part.dims.map(({ runs }) => runs[0]!.start),
      ]);
    expect(extents).toEqual([
      ['w13', [2, 4, 3], [3, 2, 0]],
      ['down', [2, 3, 2], [3, 0, 2]],
      ['bias', [2, 3], [3, 0]],
    ]);
  });

  it('biases of row-parallel layers are replicated, those of column-parallel ones are cut', () => {
    const rows = rulesOf({ rules: [{ match: '*', cut: 'row' }] });
    expect(partsOf(refit({ b: tensor(4) }, rows))).toEqual([
      { dims: [[[0, 4, 4, 1]]], ranks: [0, 1], byteOffset: 0 },
    ]);
    const columns = rulesOf({ rules: [{ match: '*', cut: 'column' }] });
    expect(partsOf(refit({ b: tensor(4) }, columns))).toHaveLength(2);
    expect(partsOf(refit({ scalar: tensor() }, columns))).toEqual([
      { dims: [], ranks: [0, 1], byteOffset: 0 },
    ]);
  });

  it('more ranks than rows leave ranks without a part', () => {
    const rules = rulesOf({ rules: [{ match: '*', cut: 'column' }] });
    const result = refit({ w: tensor(2, 3) }, rules, { from: { parallelism: 'tp=4' } });
    expect(partsOf(result).map(({ ranks }) => ranks)).toEqual([[0], [1]]);
    expect(result.sourceStorages(3)).toEqual([]);
  });
});

describe('refused', () => {
  it('heads that are not known or do not fit', () => {
    const rules = rulesOf({ rules: [{ match: '*', cut: 'heads' }] });
    const heads = (config: object, rows = 12) =>
      refusal(() => refit({ w: tensor(rows, 2), __config__: config }, rules));
    expect(heads({}).code).toBe('ERR_MODEL');
    expect(heads({}).message).toMatch(/w is cut by heads, but num_attention_heads.*config\.json/s);
    expect(heads({ num_attention_heads: 5 }).message).toMatch(/"w".*12 is no multiple of 5 heads/);
    expect(heads({ num_attention_heads: 4, num_key_value_heads: 3 }).message).toMatch(
      /4 query heads are no multiple of 3/,
    );
    const gateUp = rulesOf({ rules: [{ match: '*', cut: 'gate-up' }] });
    expect(refusal(() => refit({ w: tensor(3, 2) }, gateUp)).message).toMatch(/3 has no two halves/);
  });

  it('scales that do not fit their weight', () => {
    const rules = rulesOf({ rules: [{ match: '*', cut: 'column' }] });
    const scales = (shape: number[], config: object) =>
      refusal(() =>
        refit(
          {
            'a.weight': { shape: [10, 10], dtype: 'F8_E4M3' },
            'a.weight_scale_inv': { shape, dtype: 'F32' },
            __config__: config,
          },
          rules,
        ),
      ).message;
    const block = { quantization_config: { weight_block_size: [4, 4] } };
    expect(scales([2, 3], block)).toMatch(/blocks of 4 x 4 of a weight \[10, 10\] need \[3, 3\]/);
    expect(scales([3, 3], {})).toMatch(/size of their blocks is not known.*weight_block_size/s);
    const fused = rulesOf({ rules: [{ match: '*', cut: 'gate-up' }] });
    const overlap = () =>
      refit(
        {
          'a.weight': { shape: [12, 4], dtype: 'F8_E4M3' },
          'a.weight_scale_inv': { shape: [3, 1], dtype: 'F32' },
          __config__: block,
        },
        fused,
        { from: { parallelism: 'tp=1' } },
      );
    expect(refusal(overlap).message).toMatch(/begin at quantisation blocks/);
  });
});
