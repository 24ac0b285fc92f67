// SPDX-License-Identifier: Apache-2.0
// The Qwen3 architecture, dense and with experts. Source: modeling_qwen3.py and modeling_qwen3_moe.py of transformers.

import type { Block, Blocks, TensorLine } from './architecture.js';
import type { ModelConfig } from './model-config.js';
import { requireConfig } from './require-config.js';

const dtype = 'bf16';

/** Blocks of a `qwen3` or `qwen3_moe` configuration. Tied models have no lm_head of their own. */
export function qwen3Blocks(config: ModelConfig): Blocks {
  const c = requireConfig(config, ['num_hidden_layers', 'hidden_size', 'vocab_size']);
  const layer = [
    attention(config),
    config.model_type === 'qwen3_moe' ? experts(config) : mlp(config),
    norms(config),
  ].flat();
  const vocabulary = [c.vocab_size, c.hidden_size];
  const head: TensorLine[] =
    config.tie_word_embeddings === true ? [] : [{ name: 'lm_head.weight', shape: vocabulary, dtype }];
  return {
    before: [{ lines: [{ name: 'model.embed_tokens.weight', shape: vocabulary, dtype }] }],
    layers: Array.from({ length: c.num_hidden_layers }, () => layer),
    after: [{ lines: [{ name: 'model.norm.weight', shape: [c.hidden_size], dtype }, ...head] }],
  };
}

function attention(config: ModelConfig): Block {
  const c = requireConfig(config, ['hidden_size', 'num_attention_heads', 'num_key_value_heads', 'head_dim']);
  const query = c.num_attention_heads * c.head_dim;
  const keyValue = c.num_key_value_heads * c.head_dim;
  const line = (name: string, shape: number[]): TensorLine => ({
    name: `model.layers.{layer}.self_attn.${name}.weight`,
    shape,
    dtype,
  });
  return {
    lines: [
      line('q_proj', [query, c.hidden_size]),
      line('k_proj', [keyValue, c.hidden_size]),
      line('v_proj', [keyValue, c.hidden_size]),
      line('o_proj', [c.hidden_size, query]),
      line('q_norm', [c.head_dim]),
      line('k_norm', [c.head_dim]),
    ],
  };
}

function mlp(config: ModelConfig): Block {
  const c = requireConfig(config, ['hidden_size', 'intermediate_size']);
  return { lines: gatedLines('model.layers.{layer}.mlp', c.hidden_size, c.intermediate_size) };
}

function experts(config: ModelConfig): Block[] {
  const c = requireConfig(config, ['hidden_size', 'moe_intermediate_size', 'num_experts']);
  return [
    {
      lines: [{ name: 'model.layers.{layer}.mlp.gate.weight', shape: [c.num_experts, c.hidden_size], dtype }],
    },
    {
      lines: gatedLines('model.layers.{layer}.mlp.experts.{expert}', c.hidden_size, c.moe_intermediate_size),
      experts: c.num_experts,
    },
  ];
}

function gatedLines(prefix: string, hidden: number, intermediate: number): TensorLine[] {
  const wide = [intermediate, hidden];
  return [
    { name: `${prefix}.gate_proj.weight`, shape: wide, dtype },
    { name: `${prefix}.up_proj.weight`, shape: wide, dtype },
    { name: `${prefix}.down_proj.weight`, shape: [hidden, intermediate], dtype },
  ];
}

function norms(config: ModelConfig): Block {
  const { hidden_size } = requireConfig(config, ['hidden_size']);
  const line = (name: string): TensorLine => ({
    name: `model.layers.{layer}.${name}.weight`,
    shape: [hidden_size],
    dtype,
  });
  return { lines: [line('input_layernorm'), line('post_attention_layernorm')] };
}
