// SPDX-License-Identifier: Apache-2.0
// Models that are known by name: the fields of their published config.json that decide their parameters.

import type { ModelConfig } from './model-config.js';

const qwen3 = { model_type: 'qwen3', vocab_size: 151936, head_dim: 128, num_key_value_heads: 8 } as const;

/** Configurations by name; the organisation of the published repository may stand in front. */
export const namedConfigs: Readonly<Record<string, ModelConfig>> = {
  'Qwen/Qwen3-0.6B': {
    ...qwen3,
    num_hidden_layers: 28,
    hidden_size: 1024,
    intermediate_size: 3072,
    num_attention_heads: 16,
    tie_word_embeddings: true,
  },
  'Qwen/Qwen3-32B': {
    ...qwen3,
    num_hidden_layers: 64,
    hidden_size: 5120,
    intermediate_size: 25600,
    num_attention_heads: 64,
    tie_word_embeddings: false,
  },
  'Qwen/Qwen3-30B-A3B': {
    model_type: 'qwen3_moe',
    vocab_size: 151936,
    num_hidden_layers: 48,
    hidden_size: 2048,
    head_dim: 128,
    num_attention_heads: 32,
    num_key_value_heads: 4,
    num_experts: 128,
    moe_intermediate_size: 768,
    tie_word_embeddings: false,
  },
  'moonshotai/Kimi-K2-Instruct': {
    model_type: 'kimi_k2',
    vocab_size: 163840,
    num_hidden_layers: 61,
    hidden_size: 7168,
    intermediate_size: 18432,
    num_attention_heads: 64,
    num_key_value_heads: 64,
    q_lora_rank: 1536,
    kv_lora_rank: 512,
    qk_nope_head_dim: 128,
    qk_rope_head_dim: 64,
    v_head_dim: 128,
    first_k_dense_replace: 1,
    n_routed_experts: 384,
    n_shared_experts: 1,
    moe_intermediate_size: 2048,
    quantization_config: { weight_block_size: [128, 128] },
    tie_word_embeddings: false,
  },
};
