// SPDX-License-Identifier: Apache-2.0
// Reads the configuration of a model (config.json of Hugging Face) as far as shapes and parallelism depend on it.

import { z } from 'zod';
import { modelError } from './model-error.js';

/** The fields of a config.json that are used here, under the names that they have there. */
export interface ModelConfig {
  readonly model_type?: string | undefined;
  readonly num_hidden_layers?: number | undefined;
  readonly hidden_size?: number | undefined;
  readonly intermediate_size?: number | undefined;
  readonly vocab_size?: number | undefined;
  readonly tie_word_embeddings?: boolean | undefined;
  readonly num_attention_heads?: number | undefined;
  readonly num_key_value_heads?: number | undefined;
  readonly head_dim?: number | undefined;
  /** Routed experts, under the names that model families use. */
  readonly num_experts?: number | undefined;
  readonly num_local_experts?: number | undefined;
  readonly n_routed_experts?: number | undefined;
  readonly n_shared_experts?: number | undefined;
  readonly moe_intermediate_size?: number | undefined;
  /** Layers in front that have no experts. */
  readonly first_k_dense_replace?: number | undefined;
  /** Multi-head latent attention. */
  readonly q_lora_rank?: number | undefined;
  readonly kv_lora_rank?: number | undefined;
  readonly qk_nope_head_dim?: number | undefined;
  readonly qk_rope_head_dim?: number | undefined;
  readonly v_head_dim?: number | undefined;
  readonly quantization_config?:
    | { readonly weight_block_size?: readonly [number, number] | undefined }
    | undefined;
}

const positive = z
  .int()
  .positive()
  .nullish()
  .transform((value) => value ?? undefined);
const natural = z
  .int()
  .nonnegative()
  .nullish()
  .transform((value) => value ?? undefined);

const schema: z.ZodType<ModelConfig> = z.object({
  model_type: z.string().optional(),
  num_hidden_layers: positive,
  hidden_size: positive,
  intermediate_size: positive,
  vocab_size: positive,
  tie_word_embeddings: z.boolean().optional(),
  num_attention_heads: positive,
  num_key_value_heads: positive,
  head_dim: positive,
  num_experts: natural,
  num_local_experts: natural,
  n_routed_experts: natural,
  n_shared_experts: natural,
  moe_intermediate_size: positive,
  first_k_dense_replace: natural,
  q_lora_rank: positive,
  kv_lora_rank: positive,
  qk_nope_head_dim: positive,
  qk_rope_head_dim: positive,
  v_head_dim: positive,
  quantization_config: z
    .object({ weight_block_size: z.tuple([z.int().positive(), z.int().positive()]).optional() })
    .nullish()
    .transform((value) => value ?? undefined),
});

/**
 * Checks a parsed config.json; `source` names it in errors. The text part of a multimodal configuration is taken.
 *
 * @throws ERR_MODEL naming the field.
 */
export function modelConfig(json: unknown, source: string): ModelConfig {
  const inner = json as { text_config?: unknown } | null | undefined;
  const result = schema.safeParse(inner?.text_config ?? json);
  if (result.success) return result.data;
  throw modelError(`${source}: ${z.prettifyError(result.error)}`, { field: source });
}
