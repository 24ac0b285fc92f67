// SPDX-License-Identifier: Apache-2.0
// Refits share patterns, name their storages, know tied embeddings, and stay small for thousands of ranks.

import { describe, expect, it } from 'vitest';
import { namedModel } from '../model/describe-model.js';
import { builtInRules } from './built-in-rules.js';
import { refitTensors } from './refit-tensors.js';
import { dense, modelOf, sparse } from './small-models.test-util.js';

describe('refitTensors', () => {
  it('shares patterns between tensors that lie alike, and names stacked and joined storages with their shapes', () => {
    const model = modelOf(sparse);
    const refit = refitTensors({
      model,
      rules: builtInRules['qwen3-moe']!,
      from: { parallelism: 'tp=2' },
      to: { parallelism: 'dp=2,ep=2', view: 'vllm' },
    });
    const patternsOf = (ending: RegExp) =>
      new Set(refit.tensors.filter(({ name }) => ending.test(name)).map(({ source }) => source[0]!.pattern));
    expect(patternsOf(/experts\.\d+\.(gate|up)_proj/).size).toBe(1);
    const shapes = Object.fromEntries(
      refit.destinationStorages(2).map(({ storage, shape }) => [storage, shape]),
    );
    expect(shapes['model.layers.1.mlp.experts.w13_weight']).toEqual([3, 14, 6]);
    expect(shapes['model.layers.1.mlp.experts.w2_weight']).toEqual([3, 6, 7]);
    expect(shapes['model.layers.0.self_attn.qkv_proj.weight']).toEqual([16, 6]);
    const last = Object.fromEntries(
      refit.destinationStorages(3).map(({ storage, shape }) => [storage, shape]),
    );
    expect(last['model.layers.1.mlp.experts.w13_weight']).toEqual([2, 14, 6]);
  });

  it('holds a tied embedding on the first and the last stage, and ignores a second copy in the checkpoint', () => {
    const model = modelOf(dense);
    const embedding = model.parameters[0]!;
    const twice = {
      ...model,
      parameters: [...model.parameters, { ...embedding, name: 'lm_head.weight', template: 'lm_head.weight' }],
    };
    for (const given of [model, twice]) {
      const refit = refitTensors({
        model: given,
        rules: builtInRules.qwen3!,
        from: { parallelism: 'pp=2' },
        to: { parallelism: 'tp=2' },
      });
      expect(refit.tensors).toHaveLength(model.parameters.length);
      const tied = refit.tensors.find(({ name }) => name === embedding.name)!;
      expect(tied.source.map(({ storage }) => storage)).toEqual([embedding.name, 'lm_head.weight']);
      expect(tied.destination).toHaveLength(1);
    }
  });
});

it('Kimi-K2 from 2048 to 2048 ranks: patterns are few', () => {
  const model = namedModel('Kimi-K2-Instruct');
  const refit = refitTensors({
    model,
    rules: builtInRules['deepseek-v3']!,
    from: { parallelism: 'ranks=2048,pp=16,ep=128' },
    to: { parallelism: 'ranks=2048,tp=16' },
  });
  expect(refit.tensors).toHaveLength(139_583);
  const destinations = new Set(refit.tensors.map(({ destination }) => destination[0]!.pattern));
  expect(destinations.size).toBeLessThan(40);
});
