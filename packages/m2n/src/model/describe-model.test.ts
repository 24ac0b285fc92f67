// SPDX-License-Identifier: Apache-2.0
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../safetensors/open-checkpoint.js';
import { writeCheckpoint } from '../safetensors/write-checkpoint.js';
import { parametersOf } from './architecture.js';
import { describeCheckpoint, describeModel, modelFromJson, namedModel } from './describe-model.js';
import type { ModelConfig } from './model-config.js';
import { elementsOf } from './model-description.js';
import { parameterOf } from './parameter.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nccl-ext-model-'));
});
afterAll(() => rm(folder, { recursive: true }));

const small: ModelConfig = {
  model_type: 'qwen3',
  num_hidden_layers: 2,
  hidden_size: 8,
  intermediate_size: 12,
  vocab_size: 10,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 4,
  tie_word_embeddings: false,
};

async function write(name: string, config: ModelConfig): Promise<string> {
  const path = join(folder, `${name}.safetensors`);
  await writeCheckpoint(
    path,
    parametersOf(config).map(({ name: tensor, shape, dtype }) => ({
      name: tensor,
      dtype,
      shape,
      data: [new Uint8Array(elementsOf(shape) * (dtype === 'bf16' ? 2 : dtype === 'f32' ? 4 : 1))],
    })),
  );
  return path;
}

describe('describeCheckpoint', () => {
  it('derives every fact of a Qwen3 checkpoint from its shapes', async () => {
    await using checkpoint = await openCheckpoint(await write('small', small));
    const model = await describeCheckpoint(checkpoint);
    expect(model.parameters).toEqual(parametersOf(small));
    expect(model.facts).toEqual({
      family: undefined,
      layers: 2,
      heads: 4,
      kvHeads: 2,
      experts: 0,
      quantBlock: undefined,
      tied: false,
    });
    expect((await describeCheckpoint(checkpoint, { layers: 1 })).parameters).toHaveLength(3 + 11);
  });

  it('takes config.json before shapes, and refuses a malformed one', async () => {
    await using checkpoint = await openCheckpoint(await write('small', small));
    const config = join(folder, 'config.json');
    await writeFile(
      config,
      JSON.stringify({ ...small, num_key_value_heads: 1, rope_scaling: null, head_dim: null }),
    );
    expect((await describeCheckpoint(checkpoint)).facts).toMatchObject({ family: 'qwen3', kvHeads: 1 });
    await writeFile(config, JSON.stringify({ text_config: { num_attention_heads: 2 } }));
    expect((await describeCheckpoint(checkpoint)).facts).toMatchObject({ heads: 2 });
    await writeFile(config, JSON.stringify({ num_attention_heads: -2 }));
    await expect(describeCheckpoint(checkpoint)).rejects.toThrow(/config\.json.*num_attention_heads/s);
    await writeFile(config, '{');
    await expect(describeCheckpoint(checkpoint)).rejects.toMatchObject({ code: 'ERR_MODEL' });
    await rm(config);
  });

  it('derives heads and blocks of latent attention', () => {
    const { parameters } = namedModel('Kimi-K2-Instruct');
    const json = Object.fromEntries(
      parameters
        .filter((p) => (p.layer ?? 0) < 2 && (p.expert ?? 0) < 2)
        .map((p) => [p.name, { shape: p.shape, dtype: p.dtype }]),
    );
    expect(modelFromJson(json, 'kimi').facts).toMatchObject({
      layers: 2,
      heads: 64,
      kvHeads: 64,
      experts: 2,
      quantBlock: [128, 128],
      tied: false,
    });
  });

  it('leaves open what neither tells, and takes a missing head for a tied one', () => {
    const model = modelFromJson(
      {
        'model.embed_tokens.weight': { shape: [10, 8], dtype: 'BF16' },
        'model.layers.0.self_attn.q_proj.weight': { shape: [8, 8], dtype: 'BF16' },
      },
      'm',
    );
    expect(model.facts).toMatchObject({ heads: undefined, kvHeads: undefined, layers: 1, tied: true });
  });
});

describe('a model JSON', () => {
  it('lists parameters with dtypes by either name, and may hold a configuration', async () => {
    const file = join(folder, 'model.json');
    await writeFile(
      file,
      JSON.stringify({
        'h.0.w': { shape: [2, 3], dtype: 'F8_E4M3' },
        b: { shape: [], dtype: 'bf16' },
        __config__: { num_attention_heads: 2, model_type: 'mine' },
      }),
    );
    const model = await describeModel(file);
    expect(model.parameters).toEqual([parameterOf('h.0.w', [2, 3], 'f8e4m3'), parameterOf('b', [], 'bf16')]);
    expect(model.facts).toMatchObject({ family: 'mine', heads: 2, kvHeads: 2, layers: 1 });
  });

  const cases: [title: string, text: string, words: RegExp][] = [
    ['no JSON', '{', /is not JSON/],
    ['a list', '[]', /must be an object/],
    [
      'an unknown dtype',
      '{"a":{"shape":[1],"dtype":"FP16"}}',
      /parameter "a": dtype "FP16" is not known; known are F64/,
    ],
    ['a negative extent', '{"a":{"shape":[-1],"dtype":"F16"}}', /parameter "a".*shape\[0\]/s],
    ['a missing shape', '{"a":{"dtype":"F16"}}', /parameter "a".*shape/s],
    ['a name twice', '{"a":{"shape":[1],"dtype":"F16"},"a":{"shape":[2],"dtype":"F16"}}', /"a" occurs twice/],
    ['a bad configuration', '{"__config__":{"head_dim":0}}', /__config__.*head_dim/s],
  ];
  it.each(cases)('refuses %s', async (_title, text, words) => {
    const file = join(folder, 'bad.json');
    await writeFile(file, text);
    await expect(describeModel(file)).rejects.toMatchObject({ code: 'ERR_MODEL' });
    await expect(describeModel(file)).rejects.toThrow(words);
  });

  it('refuses a file that does not exist', async () => {
    await expect(describeModel(join(folder, 'none.json'))).rejects.toThrow(/none\.json cannot be read/);
  });
});

describe('parametersOf', () => {
  it('names the architecture or the field that is missing', () => {
    expect(() => parametersOf({ model_type: 'gpt9' })).toThrow(/"gpt9" is not known; known are qwen3/);
    expect(() => parametersOf({ ...small, head_dim: undefined })).toThrow(/qwen3 model needs head_dim/);
  });
});

it('parameterOf finds layer and expert under the names that families use', () => {
  const parts = (name: string) => {
    const { template, layer, expert } = parameterOf(name, [1], 'f32');
    return [template, layer, expert];
  };
  expect(parts('model.layers.3.mlp.experts.12.up_proj.weight')).toEqual([
    'model.layers.{layer}.mlp.experts.{expert}.up_proj.weight',
    3,
    12,
  ]);
  expect(parts('transformer.h.10.attn.c_attn.weight')).toEqual([
    'transformer.h.{layer}.attn.c_attn.weight',
    10,
    undefined,
  ]);
  expect(parts('layers.0')).toEqual(['layers.{layer}', 0, undefined]);
  expect(parts('model.norm.weight')).toEqual(['model.norm.weight', undefined, undefined]);
  expect(parts('my.sublayers.3.w1')).toEqual(['my.sublayers.3.w1', undefined, undefined]);
});
