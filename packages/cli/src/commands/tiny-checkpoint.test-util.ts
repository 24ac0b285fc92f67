// SPDX-License-Identifier: Apache-2.0
// A checkpoint of a tiny model with the names of a real family, for tests of the command.

import { randomFillSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { writeCheckpoint } from '@nccl-ext/m2n';

const config = {
  model_type: 'qwen3',
  vocab_size: 512,
  num_hidden_layers: 2,
  hidden_size: 64,
  head_dim: 16,
  intermediate_size: 192,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  tie_word_embeddings: true,
};

/** Two layers of Qwen3 in bf16 with random bytes, and config.json beside the file. */
export async function writeTinyCheckpoint(path: string): Promise<void> {
  const shapes: Record<string, readonly number[]> = { 'model.embed_tokens.weight': [512, 64] };
  for (let layer = 0; layer < 2; layer++) {
    const name = `model.layers.${layer}`;
    Object.assign(shapes, {
      [`${name}.self_attn.q_proj.weight`]: [128, 64],
      [`${name}.self_attn.k_proj.weight`]: [64, 64],
      [`${name}.self_attn.v_proj.weight`]: [64, 64],
      [`${name}.self_attn.o_proj.weight`]: [64, 128],
      [`${name}.self_attn.q_norm.weight`]: [16],
      [`${name}.self_attn.k_norm.weight`]: [16],
      [`${name}.mlp.gate_proj.weight`]: [192, 64],
      [`${name}.mlp.up_proj.weight`]: [192, 64],
      [`${name}.mlp.down_proj.weight`]: [64, 192],
      [`${name}.input_layernorm.weight`]: [64],
      [`${name}.post_attention_layernorm.weight`]: [64],
    });
  }
  shapes['model.norm.weight'] = [64];
  await writeFile(join(dirname(path), 'config.json'), JSON.stringify(config));
  await writeCheckpoint(
    path,
    Object.entries(shapes).map(([name, shape]) => ({
      name,
      dtype: 'bf16' as const,
      shape,
      data: [randomFillSync(new Uint8Array(shape.reduce((bytes, extent) => bytes * extent, 2)))],
    })),
  );
}
