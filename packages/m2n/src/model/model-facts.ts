// SPDX-License-Identifier: Apache-2.0
// Finds the facts of a model in its configuration or, where that is silent, in the shapes of its parameters.

import type { ModelConfig } from './model-config.js';
import type { ModelFacts } from './model-description.js';
import type { Parameter } from './parameter.js';

/** Facts of the configuration first, of the shapes second; what neither tells stays undefined. */
export function factsOf(config: ModelConfig | undefined, parameters: readonly Parameter[]): ModelFacts {
  const shapes = shapesByTemplate(parameters);
  const heads = config?.num_attention_heads ?? queryHeadsIn(shapes);
  return {
    family: config?.model_type,
    layers: config?.num_hidden_layers ?? countOf(parameters, 'layer'),
    heads,
    kvHeads:
      config?.num_key_value_heads ??
      (isLatent(shapes) ? heads : (headsIn(shapes, 'k') ?? config?.num_attention_heads)),
    experts: countOf(parameters, 'expert'),
    quantBlock: config?.quantization_config?.weight_block_size ?? blockIn(shapes),
    tied: config?.tie_word_embeddings ?? isHeadless(shapes),
  };
}

type Shapes = ReadonlyMap<string, readonly number[]>;

function shapesByTemplate(parameters: readonly Parameter[]): Shapes {
  const shapes = new Map<string, readonly number[]>();
  for (const { template, shape } of parameters) if (!shapes.has(template)) shapes.set(template, shape);
  return shapes;
}

function countOf(parameters: readonly Parameter[], field: 'layer' | 'expert'): number {
  let count = 0;
  for (const parameter of parameters) {
    const number = parameter[field];
    if (number !== undefined && number >= count) count = number + 1;
  }
  return count;
}

function extentOf(shapes: Shapes, ending: string, dim: number): number | undefined {
  for (const [template, shape] of shapes) if (template.endsWith(ending)) return shape[dim];
  return undefined;
}

function isLatent(shapes: Shapes): boolean {
  return extentOf(shapes, '.kv_b_proj.weight', 0) !== undefined;
}

function queryHeadsIn(shapes: Shapes): number | undefined {
  return isLatent(shapes) ? latentHeadsIn(shapes) : headsIn(shapes, 'q');
}

/** Heads of a projection whose heads are normalised one by one: the norm has the length of one head. */
function headsIn(shapes: Shapes, kind: 'q' | 'k'): number | undefined {
  return quotient(extentOf(shapes, `.${kind}_proj.weight`, 0), extentOf(shapes, `.${kind}_norm.weight`, 0));
}

/**
 * Heads of latent attention. With n, r, v the widths of one head without position, with position and of values:
 * q_b has heads x (n + r) rows, kv_b heads x (n + v), o heads x v columns, and kv_a has r rows more than its norm.
 */
function latentHeadsIn(shapes: Shapes): number | undefined {
  const query = extentOf(shapes, '.q_b_proj.weight', 0);
  const keyValue = extentOf(shapes, '.kv_b_proj.weight', 0);
  const output = extentOf(shapes, '.o_proj.weight', 1);
  const latent = extentOf(shapes, '.kv_a_proj_with_mqa.weight', 0);
  const norm = extentOf(shapes, '.kv_a_layernorm.weight', 0);
  if (query === undefined || keyValue === undefined || output === undefined) return undefined;
  if (latent === undefined || norm === undefined) return undefined;
  return quotient(query - keyValue + output, latent - norm);
}

function quotient(total: number | undefined, part: number | undefined): number | undefined {
  if (total === undefined || part === undefined || part <= 0 || total % part !== 0) return undefined;
  return total / part;
}

/** The block of the first pair of weight and scales, if its extents leave no doubt. */
function blockIn(shapes: Shapes): readonly [number, number] | undefined {
  for (const [template, scales] of shapes) {
    if (!template.endsWith('.weight_scale_inv')) continue;
    const weight = shapes.get(template.slice(0, -'_scale_inv'.length));
    const rows = quotient(weight?.[0], scales[0]);
    const columns = quotient(weight?.[1], scales[1]);
    if (rows !== undefined && columns !== undefined) return [rows, columns];
  }
  return undefined;
}

/** A model with an embedding and without a head uses the embedding as its head. */
function isHeadless(shapes: Shapes): boolean {
  return (
    [...shapes.keys()].some((name) => name.endsWith('embed_tokens.weight')) && !shapes.has('lm_head.weight')
  );
}
