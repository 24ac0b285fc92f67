// SPDX-License-Identifier: Apache-2.0
// The rules of the model families that are known by name. Sources: the parallel layers of Megatron Core and of vLLM's
// qwen3.py, qwen3_moe.py and deepseek_v2.py; the view `vllm` has the names of vLLM's fused parameters.

import type { Rule, RuleSet, ViewEntry } from './rule-set.js';

const attention = 'model.layers.{layer}.self_attn';
const mlp = 'model.layers.{layer}.mlp';
const expert = `${mlp}.experts.{expert}`;

const tied: RuleSet['tied'] = { name: 'lm_head.weight', to: 'model.embed_tokens.weight' };

const vocabulary: readonly Rule[] = [
  { match: 'model.embed_tokens.weight', cut: 'vocab', stage: 'first' },
  { match: 'lm_head.weight', cut: 'vocab', stage: 'last' },
  { match: 'model.norm.weight', cut: 'replicated', stage: 'last' },
];

const layerNorms: readonly Rule[] = [
  { match: 'model.layers.{layer}.input_layernorm.weight', cut: 'replicated' },
  { match: 'model.layers.{layer}.post_attention_layernorm.weight', cut: 'replicated' },
  { match: `${attention}.rotary_emb.inv_freq`, cut: 'replicated', keepDType: true },
];

const groupedAttention: readonly Rule[] = [
  { match: `${attention}.q_proj.*`, cut: 'heads' },
  { match: `${attention}.k_proj.*`, cut: 'kv-heads' },
  { match: `${attention}.v_proj.*`, cut: 'kv-heads' },
  { match: `${attention}.o_proj.*`, cut: 'heads', dim: 1 },
  { match: `${attention}.q_norm.weight`, cut: 'replicated' },
  { match: `${attention}.k_norm.weight`, cut: 'replicated' },
];

const latentAttention: readonly Rule[] = [
  { match: `${attention}.q_a_proj.*`, cut: 'replicated' },
  { match: `${attention}.q_a_layernorm.weight`, cut: 'replicated' },
  { match: `${attention}.q_b_proj.*`, cut: 'heads' },
  { match: `${attention}.kv_a_proj_with_mqa.*`, cut: 'replicated' },
  { match: `${attention}.kv_a_layernorm.weight`, cut: 'replicated' },
  { match: `${attention}.kv_b_proj.*`, cut: 'heads' },
  { match: `${attention}.o_proj.*`, cut: 'heads', dim: 1 },
];

const gated = (prefix: string): readonly Rule[] => [
  { match: `${prefix}.gate_proj.*`, cut: 'column' },
  { match: `${prefix}.up_proj.*`, cut: 'column' },
  { match: `${prefix}.down_proj.*`, cut: 'row' },
];

/** The layer for multi-token prediction of DeepSeek-V3 checkpoints; its number is that of the layers. */
const multiTokenPrediction: readonly Rule[] = [
  { match: 'model.layers.{layer}.embed_tokens.weight', cut: 'vocab' },
  { match: 'model.layers.{layer}.shared_head.head.weight', cut: 'vocab' },
  ...['shared_head.norm', 'eh_proj', 'enorm', 'hnorm'].map(
    (name): Rule => ({ match: `model.layers.{layer}.${name}.*`, cut: 'replicated' }),
  ),
];

const fusedAttention: ViewEntry = {
  from: [`${attention}.q_proj.*`, `${attention}.k_proj.*`, `${attention}.v_proj.*`],
  into: [`${attention}.qkv_proj.*`],
};
const fusedLatent: ViewEntry = {
  from: [`${attention}.q_a_proj.*`, `${attention}.kv_a_proj_with_mqa.*`],
  into: [`${attention}.fused_qkv_a_proj.*`],
};
const fusedGate = (prefix: string): ViewEntry => ({
  from: [`${prefix}.gate_proj.*`, `${prefix}.up_proj.*`],
  into: [`${prefix}.gate_up_proj.*`],
});
const stackedExperts: readonly ViewEntry[] = [
  { from: [`${expert}.gate_proj.*`, `${expert}.up_proj.*`], into: [`${mlp}.experts.w13_*`] },
  { from: [`${expert}.down_proj.*`], into: [`${mlp}.experts.w2_*`] },
];

const qwen3: RuleSet = {
  name: 'qwen3',
  rules: [...vocabulary, ...layerNorms, ...groupedAttention, ...gated(mlp)],
  tied,
  views: { vllm: [fusedAttention, fusedGate(mlp)] },
};

const qwen3Moe: RuleSet = {
  name: 'qwen3-moe',
  rules: [
    ...vocabulary,
    ...layerNorms,
    ...groupedAttention,
    { match: `${mlp}.gate.weight`, cut: 'replicated' },
    ...gated(expert),
    ...gated(mlp),
  ],
  tied,
  views: { vllm: [fusedAttention, fusedGate(mlp), ...stackedExperts] },
};

const deepseekV3: RuleSet = {
  name: 'deepseek-v3',
  rules: [
    ...vocabulary,
    ...layerNorms,
    ...latentAttention,
    { match: `${mlp}.gate.weight`, cut: 'replicated' },
    { match: `${mlp}.gate.e_score_correction_bias`, cut: 'replicated', keepDType: true },
    ...gated(`${mlp}.shared_experts`),
    ...gated(expert),
    ...gated(mlp),
    ...multiTokenPrediction,
  ],
  tied,
  views: { vllm: [fusedLatent, fusedGate(mlp), fusedGate(`${mlp}.shared_experts`), ...stackedExperts] },
};

/** Built-in rule sets by name. */
export const builtInRules: Readonly<Record<string, RuleSet>> = {
  qwen3,
  'qwen3-moe': qwen3Moe,
  'deepseek-v3': deepseekV3,
};

/** `model_type` of a configuration to the name of the rules that fit. */
export const rulesByFamily: Readonly<Record<string, string>> = {
  qwen3: 'qwen3',
  qwen3_moe: 'qwen3-moe',
  deepseek_v3: 'deepseek-v3',
  kimi_k2: 'deepseek-v3',
};
