// SPDX-License-Identifier: Apache-2.0
// The DeepSeek-V3 architecture, which Kimi-K2 shares: latent attention, shared and routed experts, fp8 blocks with scales.
//
// Source: modeling_deepseek.py beside the published checkpoints. Linear layers are f8e4m3 with one f32 `weight_scale_inv`
// per block; norms, embedding, head and router are bf16, the router's correction bias is f32.

import type { Block, Blocks, TensorLine } from './architecture.js';
import type { ModelConfig } from './model-config.js';
import { requireConfig } from './require-config.js';

/** Blocks of a `deepseek_v3` or `kimi_k2` configuration; layers for multi-token prediction are not listed. */
export function deepseekV3Blocks(config: ModelConfig): Blocks {
  const c = requireConfig(config, [
    'num_hidden_layers',
    'hidden_size',
    'vocab_size',
    'first_k_dense_replace',
  ]);
  const vocabulary = [c.vocab_size, c.hidden_size];
  const shared = [attention(config), norms(config)];
  const dense = [...shared, mlp(config)];
  const sparse = [...shared, ...experts(config)];
  return {
    before: [{ lines: [{ name: 'model.embed_tokens.weight', shape: vocabulary, dtype: 'bf16' }] }],
    layers: Array.from({ length: c.num_hidden_layers }, (_, i) =>
      i < c.first_k_dense_replace ? dense : sparse,
    ),
    after: [
      {
        lines: [
          { name: 'model.norm.weight', shape: [c.hidden_size], dtype: 'bf16' },
          { name: 'lm_head.weight', shape: vocabulary, dtype: 'bf16' },
        ],
      },
    ],
  };
}

function attention(config: ModelConfig): Block {
  const c = requireConfig(config, [
    'hidden_size',
    'num_attention_heads',
    'q_lora_rank',
    'kv_lora_rank',
    'qk_nope_head_dim',
    'qk_rope_head_dim',
    'v_head_dim',
  ]);
  const heads = c.num_attention_heads;
  const prefix = 'model.layers.{layer}.self_attn';
  return {
    lines: [
      ...linear(`${prefix}.q_a_proj`, c.q_lora_rank, c.hidden_size, config),
      { name: `${prefix}.q_a_layernorm.weight`, shape: [c.q_lora_rank], dtype: 'bf16' },
      ...linear(
        `${prefix}.q_b_proj`,
        heads * (c.qk_nope_head_dim + c.qk_rope_head_dim),
        c.q_lora_rank,
        config,
      ),
      ...linear(`${prefix}.kv_a_proj_with_mqa`, c.kv_lora_rank + c.qk_rope_head_dim, c.hidden_size, config),
      { name: `${prefix}.kv_a_layernorm.weight`, shape: [c.kv_lora_rank], dtype: 'bf16' },
      ...linear(`${prefix}.kv_b_proj`, heads * (c.qk_nope_head_dim + c.v_head_dim), c.kv_lora_rank, config),
      ...linear(`${prefix}.o_proj`, c.hidden_size, heads * c.v_head_dim, config),
    ],
  };
}

function norms(config: ModelConfig): Block {
  const { hidden_size } = requireConfig(config, ['hidden_size']);
  return {
    lines: ['input_layernorm', 'post_attention_layernorm'].map((name) => ({
      name: `model.layers.{layer}.${name}.weight`,
      shape: [hidden_size],
      dtype: 'bf16',
    })),
  };
}

function mlp(config: ModelConfig): Block {
  const c = requireConfig(config, ['intermediate_size']);
  return { lines: gated('model.layers.{layer}.mlp', c.intermediate_size, config) };
}

function experts(config: ModelConfig): Block[] {
  const c = requireConfig(config, [
    'hidden_size',
    'n_routed_experts',
    'n_shared_experts',
    'moe_intermediate_size',
  ]);
  const prefix = 'model.layers.{layer}.mlp';
  return [
    {
      lines: [
        { name: `${prefix}.gate.weight`, shape: [c.n_routed_experts, c.hidden_size], dtype: 'bf16' },
        { name: `${prefix}.gate.e_score_correction_bias`, shape: [c.n_routed_experts], dtype: 'f32' },
        ...gated(`${prefix}.shared_experts`, c.n_shared_experts * c.moe_intermediate_size, config),
      ],
    },
    {
      lines: gated(`${prefix}.experts.{expert}`, c.moe_intermediate_size, config),
      experts: c.n_routed_experts,
    },
  ];
}

function gated(prefix: string, intermediate: number, config: ModelConfig): TensorLine[] {
  const { hidden_size } = requireConfig(config, ['hidden_size']);
  return [
    ...linear(`${prefix}.gate_proj`, intermediate, hidden_size, config),
    ...linear(`${prefix}.up_proj`, intermediate, hidden_size, config),
    ...linear(`${prefix}.down_proj`, hidden_size, intermediate, config),
  ];
}

/** A weight and, if the model is quantised in blocks, its scales. */
function linear(name: string, rows: number, columns: number, config: ModelConfig): TensorLine[] {
  const block = config.quantization_config?.weight_block_size;
  const shape = [rows, columns];
  if (block === undefined) return [{ name: `${name}.weight`, shape, dtype: 'bf16' }];
  const scales = [Math.ceil(rows / block[0]), Math.ceil(columns / block[1])];
  return [
    { name: `${name}.weight`, shape, dtype: 'f8e4m3' },
    { name: `${name}.weight_scale_inv`, shape: scales, dtype: 'f32' },
  ];
}
