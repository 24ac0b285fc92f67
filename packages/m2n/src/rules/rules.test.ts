// SPDX-License-Identifier: Apache-2.0
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DType, NcclExtError } from '@nccl-ext/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { modelFromJson, namedModel } from '../model/describe-model.js';
import { namedConfigs } from '../model/named-models.js';
import { builtInRules } from './built-in-rules.js';
import { chunk, shareHeads } from './cut-dimension.js';
import { findRules } from './find-rules.js';
import { matchRule } from './match-rule.js';
import { type RefitInput, refitTensors } from './refit-tensors.js';
import { parseRuleSet, type RuleSet } from './rule-set.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nccl-ext-rules-'));
});
afterAll(() => rm(folder, { recursive: true }));

function refusal(work: () => unknown): NcclExtError {
  try {
    work();
  } catch (error) {
    if (NcclExtError.is(error)) return error;
    throw error;
  }
  throw new Error('was accepted');
}

const tensor = (...shape: number[]) => ({ shape, dtype: 'bf16' });
const refit = (parameters: Record<string, unknown>, rules: RuleSet, input: Partial<RefitInput> = {}) =>
  refitTensors({
    model: modelFromJson(parameters, 'm'),
    rules,
    from: { parallelism: 'tp=2' },
    to: { parallelism: 'tp=1' },
    ...input,
  });
const rulesOf = (rest: Partial<RuleSet>): RuleSet => ({ name: 'mine', rules: [], ...rest });
/** The rows and columns of the first copy of the first tensor, by part. */
const partsOf = (result: ReturnType<typeof refit>) =>
  result.tensors[0]!.source[0]!.pattern.parts.map(({ dims, ranks, byteOffset }) => ({
    dims: dims.map(({ runs }) =>
      runs.map(({ start, length, stride, count }) => [start, length, stride, count]),
    ),
    ranks: [...ranks],
    byteOffset,
  }));

describe('shares', () => {
  it('chunk is torch.chunk, in units', () => {
    expect(chunk(10, 4)).toEqual([
      [0, 3],
      [3, 6],
      [6, 9],
      [9, 10],
    ]);
    expect(chunk(4, 3)).toEqual([
      [0, 2],
      [2, 4],
      [4, 4],
    ]);
    expect(chunk(576, 4, 128)).toEqual([
      [0, 256],
      [256, 512],
      [512, 576],
      [576, 576],
    ]);
  });

  it('8 key and value heads on 16 ranks: two ranks have each, and half of its query heads', () => {
    const { query, keyValue } = shareHeads(64, 8, 16);
    expect(keyValue.slice(0, 4)).toEqual([
      [0, 1],
      [0, 1],
      [1, 2],
      [1, 2],
    ]);
    expect(query.slice(0, 3)).toEqual([
      [0, 4],
      [4, 8],
      [8, 12],
    ]);
  });

  it('what does not divide is uneven, and no head is left out', () => {
    expect(shareHeads(6, 3, 2)).toEqual({
      keyValue: [
        [0, 2],
        [2, 3],
      ],
      query: [
        [0, 4],
        [4, 6],
      ],
    });
    expect(shareHeads(6, 2, 3)).toEqual({
      keyValue: [
        [0, 1],
        [0, 1],
        [1, 2],
      ],
      query: [
        [0, 2],
        [2, 3],
        [3, 6],
      ],
    });
  });
});

describe('the rules that hold', () => {
  it('built-in rules cover every parameter of the models they are for, and are found by family or by fit', async () => {
    for (const name of Object.keys(namedConfigs)) {
      const model = namedModel(name);
      const rules = await findRules(model);
      const anonymous = { ...model, facts: { ...model.facts, family: undefined } };
      expect((await findRules(anonymous)).name).toBe(rules.name);
      for (const { template } of model.parameters) expect(matchRule(rules, template)).toBeDefined();
    }
  });

  it('built-in rules pass their own schema', () => {
    for (const [name, rules] of Object.entries(builtInRules))
      expect(parseRuleSet(JSON.parse(JSON.stringify(rules)), name)).toEqual(rules);
  });

  it('come from a file', async () => {
    const file = join(folder, 'mine.json');
    await writeFile(file, JSON.stringify({ name: 'mine', rules: [{ match: 'w', cut: 'column' }] }));
    expect((await findRules(namedModel('Qwen3-0.6B'), file)).name).toBe('mine');
    await writeFile(file, '{');
    await expect(findRules(namedModel('Qwen3-0.6B'), file)).rejects.toMatchObject({ code: 'ERR_RULES' });
  });

  it('the first of two that match holds', () => {
    const rules = rulesOf({
      rules: [
        { match: 'a.*', cut: 'column' },
        { match: 'a.w', cut: 'replicated' },
      ],
    });
    expect(matchRule(rules, 'a.w')?.cut).toBe('column');
  });

  it('characters of expressions have no meaning in names', () => {
    const rules = rulesOf({ rules: [{ match: 'a.(b)+*', cut: 'column' }] });
    expect(matchRule(rules, 'a.(b)+c')).toBeDefined();
    expect(matchRule(rules, 'aX(b)+c')).toBeUndefined();
  });
});

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

describe('casts', () => {
  const rules = rulesOf({
    rules: [
      { match: 'bias', cut: 'replicated', keepDType: true },
      { match: '*', cut: 'replicated' },
    ],
  });
  const cast = (parameters: Record<string, unknown>, to: DType) =>
    refit(parameters, rules, { cast: to }).tensors.map(({ name, source, destination }) => [
      name,
      source[0]!.pattern.dtype,
      destination[0]!.pattern.dtype,
    ]);

  it('change the dtype of floats at the destination', () => {
    expect(
      cast({ w: tensor(2), bias: { shape: [2], dtype: 'F32' }, ids: { shape: [2], dtype: 'I64' } }, 'f16'),
    ).toEqual([
      ['w', 'bf16', 'f16'],
      ['bias', 'f32', 'f32'],
      ['ids', 'i64', 'i64'],
    ]);
    expect(cast({ w: { shape: [2], dtype: 'F8_E4M3' } }, 'bf16')).toEqual([['w', 'f8e4m3', 'bf16']]);
  });

  it('are refused for block-quantised weights, their scales and packed floats', () => {
    const quantised = {
      'w.weight': { shape: [4, 4], dtype: 'F8_E4M3' },
      'w.weight_scale_inv': { shape: [2, 2], dtype: 'F32' },
    };
    for (const order of [Object.entries(quantised), Object.entries(quantised).reverse()]) {
      const error = refusal(() => cast(Object.fromEntries(order), 'bf16'));
      expect(error.code).toBe('ERR_CAST');
      expect(error.message).toMatch(/"w\.weight.*cannot be cast to bf16: it is quantised in blocks/);
    }
    expect(refusal(() => cast({ w: { shape: [4], dtype: 'F4' } }, 'bf16')).message).toMatch(
      /from f4e2m1x2 to bf16/,
    );
    expect(refusal(() => cast({ w: tensor(4) }, 'i8')).message).toMatch(/from bf16 to i8/);
  });
});

describe('refused', () => {
  const bad = (json: unknown) => refusal(() => parseRuleSet(json, 'mine.json')).message;
  it('malformed files, naming the field', () => {
    expect(bad({ name: 'x', rules: [{ match: 'a', cut: 'diagonal' }] })).toMatch(
      /mine\.json.*"column".*rules\[0\]\.cut/s,
    );
    expect(bad({ name: 'x', rules: [{ match: 'layers.3.a', cut: 'row' }] })).toMatch(
      /\{layer\}.*rules\[0\]\.match/s,
    );
    expect(bad({ name: 'x', rules: [{ match: 'a', cut: 'row', typo: 1 }] })).toMatch(/typo/);
    expect(bad({ name: 'x', rules: [], views: { v: [{ from: ['a', 'b'], into: ['c', 'd'] }] } })).toMatch(
      /one name/,
    );
    expect(bad({ name: 'x', rules: [], views: { v: [{ from: ['a*', 'b'], into: ['c'] }] } })).toMatch(/\*/);
    expect(bad({ name: 'x', rules: [], views: { v: [{ from: ['a*b'], into: ['c*'] }] } })).toMatch(/\*/);
  });

  it('a parameter without a rule, naming it and the closest rule; unless there is a default', () => {
    const rules = rulesOf({
      rules: [
        { match: 'layers.{layer}.up.weight', cut: 'column' },
        { match: 'norm', cut: 'replicated' },
      ],
    });
    const error = refusal(() => refit({ 'layers.4.pu.weight': tensor(2) }, rules));
    expect(error.code).toBe('ERR_RULES');
    expect(error.message).toMatch(/"layers\.4\.pu\.weight"; the closest is "layers\.\{layer\}\.up\.weight"/);
    expect(
      partsOf(refit({ 'layers.4.pu.weight': tensor(2) }, { ...rules, otherwise: 'replicated' })),
    ).toHaveLength(1);
    expect(refusal(() => refit({ a: tensor(2) }, rulesOf({}))).message).toMatch(/they are empty/);
  });

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

  it('views that do not exist, or join and split what cannot be', () => {
    const view = (
      entries: RuleSet['views'],
      rest: Partial<RuleSet> = {},
      model: Record<string, unknown> = { a: tensor(4, 2), b: tensor(4, 3) },
    ) =>
      refusal(() =>
        refit(model, rulesOf({ rules: [{ match: '*', cut: 'column' }], views: entries, ...rest }), {
          from: { parallelism: 'tp=2', view: 'v' },
        }),
      );
    expect(view({ w: [] }).message).toMatch(/no view "v"; the closest is w/);
    expect(view({ v: [{ from: ['a', 'c'], into: ['ac'] }] }).message).toMatch(
      /storage "ac" joins parameter "c", which the model lacks/,
    );
    expect(view({ v: [{ from: ['a', 'b'], into: ['ab'] }] }).message).toMatch(
      /"ab" cannot join the rows of "a", "b"/,
    );
    expect(view({ v: [{ from: ['a'], into: ['x', 'y'] }] }).message).toMatch(
      /"a" is split into 2 storages, but its rule gives 1/,
    );
    const stacked = { rules: [{ match: '*', cut: 'gate-up', stacked: true } as const] };
    const experts = { a: tensor(2, 4, 2), b: tensor(2, 4, 2) };
    expect(view({ v: [{ from: ['a'], into: ['x', 'y'] }] }, stacked, experts).message).toMatch(
      /stacked experts cannot be/,
    );
    expect(view({ v: [{ from: ['a', 'b'], into: ['x'] }] }, stacked, experts).message).toMatch(/cannot join/);
    expect(view({ v: [] }, stacked, { a: tensor() }).message).toMatch(/no dimension of experts/);
  });

  it('a joined storage whose members change their shapes between layers', () => {
    const rules = rulesOf({
      rules: [{ match: '*', cut: 'column' }],
      views: { v: [{ from: ['layers.{layer}.a', 'layers.{layer}.b'], into: ['layers.{layer}.ab'] }] },
    });
    const model = {
      'layers.0.a': tensor(4),
      'layers.0.b': tensor(4),
      'layers.1.a': tensor(6),
      'layers.1.b': tensor(4),
    };
    const result = refit(model, rules, { from: { parallelism: 'tp=1', view: 'v' } });
    const error = refusal(() => result.sourceStorages(0));
    expect(error.code).toBe('ERR_RULES');
    expect(error.message).toMatch(
      /"layers\.1\.ab" has "layers\.1\.b" at byte 8, but the pieces before end at 12/,
    );
  });

  it('rules that nobody knows and models that no rules fit', async () => {
    await expect(findRules(namedModel('Qwen3-0.6B'), 'qwen4')).rejects.toThrow(
      /"qwen4" are not known; the closest are qwen3/,
    );
    await expect(findRules(namedModel('Qwen3-0.6B'), 'toString')).rejects.toMatchObject({
      code: 'ERR_RULES',
    });
    await expect(findRules(modelFromJson({ 'my.weight': tensor(1) }, 'm'))).rejects.toThrow(
      /no built-in rules fit m; qwen3 have none for my\.weight/,
    );
  });
});

it('the rules of docs/rules.md are rules', async () => {
  const text = await readFile(new URL('../../../../docs/rules.md', import.meta.url), 'utf8');
  expect(parseRuleSet(JSON.parse(/```json\n(.*?)```/s.exec(text)![1]!), 'docs').rules).toHaveLength(8);
});
