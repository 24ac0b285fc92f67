// SPDX-License-Identifier: Apache-2.0
import { dtypeBytes } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parametersOf } from '../model/architecture.js';
import { namedModel } from '../model/describe-model.js';
import type { ModelConfig } from '../model/model-config.js';
import type { ModelDescription } from '../model/model-description.js';
import { factsOf } from '../model/model-facts.js';
import type { Parameter } from '../model/parameter.js';
import { type Parallelism, parallelism } from '../parallel/parallelism.js';
import { builtInRules } from './built-in-rules.js';
import { refitTensors } from './refit-tensors.js';
import type { SideStorage } from './side-storages.js';

const dense: ModelConfig = {
  model_type: 'qwen3',
  num_hidden_layers: 3,
  hidden_size: 6,
  intermediate_size: 10,
  vocab_size: 11,
  num_attention_heads: 6,
  num_key_value_heads: 3,
  head_dim: 2,
  tie_word_embeddings: true,
};
const sparse: ModelConfig = {
  ...dense,
  model_type: 'qwen3_moe',
  num_attention_heads: 4,
  num_key_value_heads: 2,
  num_experts: 5,
  moe_intermediate_size: 7,
  tie_word_embeddings: false,
};
const latent: ModelConfig = {
  model_type: 'deepseek_v3',
  num_hidden_layers: 2,
  hidden_size: 12,
  intermediate_size: 10,
  vocab_size: 7,
  num_attention_heads: 4,
  num_key_value_heads: 4,
  q_lora_rank: 6,
  kv_lora_rank: 4,
  qk_nope_head_dim: 3,
  qk_rope_head_dim: 2,
  v_head_dim: 3,
  first_k_dense_replace: 1,
  n_routed_experts: 5,
  n_shared_experts: 1,
  moe_intermediate_size: 9,
  quantization_config: { weight_block_size: [4, 4] },
  tie_word_embeddings: false,
};
const modelOf = (config: ModelConfig): ModelDescription => {
  const parameters = parametersOf(config);
  return { name: 'small', facts: factsOf(config, parameters), parameters };
};
const cases = [
  { model: modelOf(dense), rules: builtInRules.qwen3! },
  { model: modelOf(sparse), rules: builtInRules['qwen3-moe']! },
  { model: modelOf(latent), rules: builtInRules['deepseek-v3']! },
];

// The oracle: from the definitions, one rank and one element at a time.

/** Which of `parts` has unit `index` of `count` under torch.chunk. */
const chunkOwner = (index: number, count: number, parts: number) =>
  Math.floor(index / Math.ceil(count / parts));

/** Whether rank `t` of `parts` holds query head `head`. */
function holdsQuery(head: number, t: number, parts: number, heads: number, kvHeads: number): boolean {
  const keyValue = Math.floor(head / (heads / kvHeads));
  if (parts <= kvHeads) return chunkOwner(keyValue, kvHeads, parts) === t;
  const sharers = Array.from({ length: parts }, (_, r) => r).filter(
    (r) => Math.floor((r * kvHeads) / parts) === keyValue,
  );
  const within = head % (heads / kvHeads);
  return sharers[chunkOwner(within, heads / kvHeads, sharers.length)] === t;
}

function holdsKeyValue(head: number, t: number, parts: number, kvHeads: number): boolean {
  return parts <= kvHeads
    ? chunkOwner(head, kvHeads, parts) === t
    : Math.floor((t * kvHeads) / parts) === head;
}

/** Indices of the cut dimension of a weight that rank `t` of `parts` holds, and which dimension that is. */
function heldIndices(
  name: string,
  shape: readonly number[],
  t: number,
  parts: number,
  model: ModelDescription,
) {
  const all = (n: number) => Array.from({ length: n }, (_, i) => i);
  const { heads, kvHeads, quantBlock } = model.facts;
  const quantised = /proj/.test(name) && quantBlock !== undefined;
  const byChunk = (dim: number) => {
    const unit = quantised ? quantBlock[dim]! : 1;
    const units = Math.ceil(shape[dim]! / unit);
    return {
      dim,
      indices: all(shape[dim]!).filter((i) => chunkOwner(Math.floor(i / unit), units, parts) === t),
    };
  };
  const byHeads = (dim: number, count: number, holds: (head: number) => boolean) => ({
    dim,
    indices: all(shape[dim]!).filter((i) => holds(Math.floor(i / (shape[dim]! / count)))),
  });
  if (/embed_tokens|lm_head|\.(gate|up)_proj/.test(name)) return byChunk(0);
  if (/down_proj/.test(name)) return byChunk(1);
  if (/\.(q_proj|q_b_proj|kv_b_proj)/.test(name))
    return byHeads(0, heads!, (h) => holdsQuery(h, t, parts, heads!, kvHeads!));
  if (/\.[kv]_proj/.test(name)) return byHeads(0, kvHeads!, (h) => holdsKeyValue(h, t, parts, kvHeads!));
  if (/o_proj/.test(name)) return byHeads(1, heads!, (h) => holdsQuery(h, t, parts, heads!, kvHeads!));
  return undefined;
}

/** The global elements of a parameter that a rank holds, in its local order; undefined when it holds none. */
function heldElements(
  parameter: Parameter,
  rank: number,
  p: Parallelism,
  model: ModelDescription,
): number[] | undefined {
  const { name, shape, layer, expert } = parameter;
  const stageRanks = p.dp * p.cp * p.tp;
  const stage = Math.floor(rank / stageRanks);
  const within = rank % stageRanks;
  const wanted =
    layer === undefined
      ? /embed/.test(name)
        ? 0
        : p.pp - 1
      : Math.floor((layer * p.pp) / model.facts.layers);
  if (stage !== wanted) return undefined;
  const group = Math.floor(within / p.etp) % p.ep;
  if (expert !== undefined && chunkOwner(expert, model.facts.experts, p.ep) !== group) return undefined;
  const [t, parts] = expert === undefined ? [within % p.tp, p.tp] : [within % p.etp, p.etp];
  const weightName = name.replace('_scale_inv', '');
  const weight = model.parameters.find((other) => other.name === weightName) ?? parameter;
  const held = heldIndices(name, weight.shape, t, parts, model);
  const indices = shape.map((extent, dim) => {
    if (held?.dim !== dim) return Array.from({ length: extent }, (_, i) => i);
    if (weightName === name) return held.indices;
    return [...new Set(held.indices.map((i) => Math.floor(i / model.facts.quantBlock![dim]!)))];
  });
  let elements = [0];
  for (const [dim, list] of indices.entries())
    elements = elements.flatMap((base) => list.map((i) => base * shape[dim]! + i));
  return elements.length === 0 ? undefined : elements;
}

/** The storages of a rank: for each its elements in order, as `parameter#element`. */
function expectedStorages(
  rank: number,
  p: Parallelism,
  model: ModelDescription,
  view: string,
): Map<string, string[]> {
  const storages = new Map<string, string[]>();
  const add = (storage: string, parameter: Parameter) => {
    const elements = heldElements(parameter, rank, p, model);
    if (elements === undefined) return;
    const list = storages.get(storage) ?? [];
    for (const element of elements) list.push(`${parameter.name}#${element}`);
    storages.set(storage, list);
  };
  for (const parameter of model.parameters) {
    const { name } = parameter;
    let storage = name;
    if (view === 'vllm') {
      storage = name
        .replace(/experts\.\d+\.(gate|up)_proj\./, 'experts.w13_')
        .replace(/experts\.\d+\.down_proj\./, 'experts.w2_')
        .replace(/\.[qkv]_proj\./, '.qkv_proj.')
        .replace(/\.(gate|up)_proj\./, '.gate_up_proj.')
        .replace(/\.(q_a_proj|kv_a_proj_with_mqa)\./, '.fused_qkv_a_proj.');
    }
    add(storage, parameter);
  }
  return storages;
}

/** What a storage holds according to its pieces, element by element. */
function contentOf(storage: SideStorage, model: ModelDescription): string[] {
  const content: string[] = [];
  for (const { name, part, byteOffset } of storage.pieces) {
    const { shape } = model.parameters.find((parameter) => parameter.name === name)!;
    const indices = part.dims.map(({ runs }) =>
      runs.flatMap(({ start, length, stride, count }) =>
        Array.from(
          { length: count * length },
          (_, i) => start + Math.floor(i / length) * stride + (i % length),
        ),
      ),
    );
    let cells: [element: number, byte: number][] = [[0, byteOffset]];
    for (const [dim, list] of indices.entries()) {
      cells = cells.flatMap(([element, byte]) =>
        list.map((index, i): [number, number] => [
          element * shape[dim]! + index,
          byte + i * part.byteStrides[dim]!,
        ]),
      );
    }
    for (const [element, byte] of cells) {
      const position = byte / dtypeBytes(storage.dtype);
      if (content[position] !== undefined) throw new Error(`two elements at byte ${byte}`);
      content[position] = `${name}#${element}`;
    }
  }
  return content;
}

const sizes = fc
  .record({
    pp: fc.integer({ min: 1, max: 3 }),
    dp: fc.integer({ min: 1, max: 3 }),
    cp: fc.integer({ min: 1, max: 2 }),
    tp: fc.integer({ min: 1, max: 5 }),
    pick: fc.nat(1000),
  })
  .map(({ pick, ...given }) => {
    const stage = given.dp * given.cp * given.tp;
    const divisors = Array.from({ length: stage }, (_, i) => i + 1).filter((n) => stage % n === 0);
    const ep = divisors[pick % divisors.length]!;
    const inner = divisors.filter((n) => (stage / ep) % n === 0);
    return parallelism({ ...given, ep, etp: inner[(pick * 13) % inner.length]! });
  });

describe('refitTensors', () => {
  it.each(cases)('places $rules.name as the definitions say, on every rank', ({ model, rules }) => {
    const view = fc.constantFrom('checkpoint', 'vllm');
    fc.assert(
      fc.property(sizes, sizes, view, view, fc.boolean(), (from, to, fromView, toView, colocated) => {
        const refit = refitTensors({
          model,
          rules,
          from: { parallelism: from, view: fromView },
          to: { parallelism: to, view: toView },
          colocated,
        });
        expect(refit.worldSize).toBe(colocated ? Math.max(from.ranks, to.ranks) : from.ranks + to.ranks);
        const first = colocated ? 0 : from.ranks;
        for (const [side, p, offset, sideView] of [
          ['sourceStorages', from, 0, fromView],
          ['destinationStorages', to, first, toView],
        ] as const) {
          for (let rank = 0; rank < p.ranks; rank++) {
            const expected = expectedStorages(rank, p, model, sideView);
            if (model.facts.tied && p.pp > 1 && Math.floor(rank / (p.ranks / p.pp)) === p.pp - 1) {
              const embedding = model.parameters[0]!;
              const { name: _name, ...rest } = embedding;
              const elements = heldElements({ ...rest, name: 'lm_head.weight' }, rank, p, model);
              if (elements !== undefined)
                expected.set(
                  'lm_head.weight',
                  elements.map((e) => `${embedding.name}#${e}`),
                );
            }
            const storages = refit[side](rank + offset);
            const found = new Map(storages.map((storage) => [storage.storage, contentOf(storage, model)]));
            expect([...found.keys()].sort()).toEqual([...expected.keys()].sort());
            for (const storage of storages) {
              const content = found.get(storage.storage)!;
              expect(content).toEqual(expected.get(storage.storage));
              expect(storage.bytes).toBe(content.length * dtypeBytes(storage.dtype));
              expect(storage.shape.reduce((a, b) => a * b, 1)).toBe(content.length);
            }
          }
        }
      }),
      { numRuns: 30 },
    );
  });

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
