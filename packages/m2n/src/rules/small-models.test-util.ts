// SPDX-License-Identifier: Apache-2.0
// Models small enough to check element by element: dense, with experts, and with latent attention in quantised blocks.

import { parametersOf } from '../model/architecture.js';
import type { ModelConfig } from '../model/model-config.js';
import type { ModelDescription } from '../model/model-description.js';
import { factsOf } from '../model/model-facts.js';
import { builtInRules } from './built-in-rules.js';

export const dense: ModelConfig = {
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
export const sparse: ModelConfig = {
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
export const modelOf = (config: ModelConfig): ModelDescription => {
  const parameters = parametersOf(config);
  return { name: 'small', facts: factsOf(config, parameters), parameters };
};
export const cases = [
  { model: modelOf(dense), rules: builtInRules.qwen3! },
  { model: modelOf(sparse), rules: builtInRules['qwen3-moe']! },
  { model: modelOf(latent), rules: builtInRules['deepseek-v3']! },
];
