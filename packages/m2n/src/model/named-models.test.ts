// SPDX-License-Identifier: Apache-2.0
import { dtypeBytes } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { parametersOf } from './architecture.js';
import { describeModel, namedModel } from './describe-model.js';
import { elementsOf, parameterBytes } from './model-description.js';
import { namedConfigs } from './named-models.js';
import { parameterOf } from './parameter.js';

const countOf = (name: string, pick = (_name: string) => true): number =>
  namedModel(name)
    .parameters.filter((parameter) => pick(parameter.name))
    .reduce((sum, { shape }) => sum + elementsOf(shape), 0);

describe('named models have the published sizes', () => {
  // Model cards: 0.6B in total, 0.44B without the embedding.
  it('Qwen3-0.6B', () => {
    const { parameters, facts } = namedModel('Qwen3-0.6B');
    expect(parameters).toHaveLength(28 * 11 + 2);
    expect(countOf('Qwen3-0.6B')).toBe(596_049_920);
    expect(countOf('Qwen3-0.6B', (name) => !name.includes('embed')) / 1e9).toBeCloseTo(0.44, 2);
    // The checkpoint holds the head beside the embedding, 751,632,384 elements; it is tied here.
    expect(countOf('Qwen3-0.6B') + 151936 * 1024).toBe(751_632_384);
    expect(facts).toEqual({
      family: 'qwen3',
      layers: 28,
      heads: 16,
      kvHeads: 8,
      experts: 0,
      quantBlock: undefined,
      tied: true,
    });
  });

  // facts: 707 tensors, 65.52 GB; model card: 32.8B, 31.2B without embeddings.
  it('Qwen3-32B', () => {
    const model = namedModel('Qwen3-32B');
    expect(model.parameters).toHaveLength(707);
    expect(parameterBytes(model) / 1e9).toBeCloseTo(65.52, 2);
    expect(countOf('Qwen3-32B', (name) => !/embed|lm_head/.test(name)) / 1e9).toBeCloseTo(31.2, 1);
  });

  // Model card: 30.5B in total, 29.9B without embeddings.
  it('Qwen3-30B-A3B', () => {
    const { parameters, facts } = namedModel('Qwen3-30B-A3B');
    expect(parameters).toHaveLength(48 * (6 + 2 + 1 + 128 * 3) + 3);
    expect(countOf('Qwen3-30B-A3B') / 1e9).toBeCloseTo(30.5, 1);
    expect(countOf('Qwen3-30B-A3B', (name) => !/embed|lm_head/.test(name)) / 1e9).toBeCloseTo(29.9, 1);
    expect(facts).toMatchObject({ experts: 128, heads: 32, kvHeads: 4, tied: false });
  });

  // Model card: 1T. llama.cpp reports 1.026 T, 1024.059 B of them in the layers, when it loads the converted model.
  it('Kimi-K2-Instruct', () => {
    const name = 'Kimi-K2-Instruct';
    const scales = (n: string) => n.endsWith('_scale_inv');
    expect(countOf(name, (n) => !scales(n))).toBe(1_026_408_232_448);
    expect(countOf(name, (n) => n.startsWith('model.layers.') && !scales(n)) / 1e9).toBeCloseTo(1024.059, 3);
    expect(countOf(name, scales)).toBe(62_495_192);
    const { parameters, facts } = namedModel(name);
    expect(parameters).toHaveLength(139_583);
    expect(facts).toEqual({
      family: 'kimi_k2',
      layers: 61,
      heads: 64,
      kvHeads: 64,
      experts: 384,
      quantBlock: [128, 128],
      tied: false,
    });
  });

  // DeepSeek-V3, of the same architecture: 671B, reported as 671.026 B by llama.cpp, without multi-token prediction.
  it('the DeepSeek-V3 architecture', () => {
    const config = {
      ...namedConfigs['moonshotai/Kimi-K2-Instruct']!,
      model_type: 'deepseek_v3',
      vocab_size: 129280,
    };
    const deepseek = { ...config, num_attention_heads: 128, first_k_dense_replace: 3, n_routed_experts: 256 };
    const weights = parametersOf(deepseek).filter(({ name }) => !name.endsWith('_scale_inv'));
    expect(weights.reduce((sum, { shape }) => sum + elementsOf(shape), 0) / 1e9).toBeCloseTo(671.026, 3);
  });

  it('Kimi-K2 quantises its linear layers only', () => {
    const kimi = namedModel('Kimi-K2-Instruct').parameters;
    const dtypeOf = (ending: string) =>
      new Set(kimi.filter((p) => p.name.endsWith(ending)).map((p) => p.dtype));
    expect(dtypeOf('layernorm.weight')).toEqual(new Set(['bf16']));
    expect(dtypeOf('.gate.weight')).toEqual(new Set(['bf16']));
    expect(dtypeOf('embed_tokens.weight')).toEqual(new Set(['bf16']));
    expect(dtypeOf('lm_head.weight')).toEqual(new Set(['bf16']));
    expect(dtypeOf('_proj.weight')).toEqual(new Set(['f8e4m3']));
    expect(dtypeOf('with_mqa.weight')).toEqual(new Set(['f8e4m3']));
    expect(dtypeOf('_scale_inv')).toEqual(new Set(['f32']));
    expect(dtypeOf('correction_bias')).toEqual(new Set(['f32']));
    expect(
      kimi.find((p) => p.name === 'model.layers.60.self_attn.kv_a_proj_with_mqa.weight_scale_inv')?.shape,
    ).toEqual([5, 56]);
  });
});

it('parameters carry what their names say, in every model', () => {
  for (const name of Object.keys(namedConfigs)) {
    const { parameters } = namedModel(name);
    expect(new Set(parameters.map((parameter) => parameter.name)).size).toBe(parameters.length);
    for (let i = 0; i < parameters.length; i += 997) {
      const { name: full, shape, dtype } = parameters[i]!;
      expect(parameters[i]).toEqual(parameterOf(full, shape, dtype));
    }
  }
});

it('cuts to the first layers', async () => {
  const model = await describeModel('Qwen3-0.6B', { layers: 3 });
  expect(model.parameters).toHaveLength(35);
  expect(model.facts.layers).toBe(3);
  const bytes = model.parameters.reduce(
    (sum, { shape, dtype }) => sum + elementsOf(shape) * dtypeBytes(dtype),
    0,
  );
  expect(bytes).toBe(parameterBytes(model));
  for (const layers of [0, 29, 1.5]) {
    await expect(describeModel('Qwen3-0.6B', { layers })).rejects.toThrow(
      /layers must be an integer in 1\.\.28/,
    );
  }
});

it('names the closest of the known models', () => {
  expect(() => namedModel('qwen3-32b')).toThrow(/"qwen3-32b" is not known; the closest is Qwen3-32B/);
});

it('lists the 139,583 parameters of Kimi-K2', () => {
  expect(namedModel('Kimi-K2-Instruct').parameters).toHaveLength(139_583);
});
