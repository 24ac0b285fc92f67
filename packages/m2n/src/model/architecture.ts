// SPDX-License-Identifier: Apache-2.0
// Lists the parameters of a known architecture from its configuration, in the order and with the names of its checkpoints.

import type { DType } from '@nccl-ext/core';
import { deepseekV3Blocks } from './deepseek-v3.js';
import type { ModelConfig } from './model-config.js';
import { modelError } from './model-error.js';
import type { Parameter } from './parameter.js';
import { qwen3Blocks } from './qwen3.js';

/** One tensor of an architecture; `name` is a template as in {@link Parameter}. */
export interface TensorLine {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: DType;
}

/** Lines that occur once, or once for every expert. */
export interface Block {
  readonly lines: readonly TensorLine[];
  /** Repeated for experts 0 to this number less one. */
  readonly experts?: number;
}

/** What an architecture consists of. Equal layers share their blocks, which makes 1e5 parameters cheap. */
export interface Blocks {
  readonly before: readonly Block[];
  readonly layers: readonly (readonly Block[])[];
  readonly after: readonly Block[];
}

/** `model_type` of a configuration to its blocks. */
const architectures: Readonly<Record<string, (config: ModelConfig) => Blocks>> = {
  qwen3: qwen3Blocks,
  qwen3_moe: qwen3Blocks,
  deepseek_v3: deepseekV3Blocks,
  kimi_k2: deepseekV3Blocks,
};

/** @throws ERR_MODEL when the architecture is not known or its configuration lacks a field. */
export function parametersOf(config: ModelConfig): readonly Parameter[] {
  const build = architectures[config.model_type ?? ''];
  if (build === undefined) {
    const known = Object.keys(architectures).join(', ');
    throw modelError(`model_type ${JSON.stringify(config.model_type)} is not known; known are ${known}`, {
      field: 'model_type',
    });
  }
  const { before, layers, after } = build(config);
  const parameters: Parameter[] = [];
  appendBlocks(parameters, before, undefined);
  for (const [layer, blocks] of layers.entries()) appendBlocks(parameters, blocks, layer);
  appendBlocks(parameters, after, undefined);
  return parameters;
}

function appendBlocks(parameters: Parameter[], blocks: readonly Block[], layer: number | undefined): void {
  for (const { lines, experts } of blocks) {
    // A template is cut at its expert number once, not once per expert.
    const parts = lines.map((line) => {
      const [front = '', back = ''] = line.name.replace('{layer}', String(layer)).split('{expert}');
      return { line, front, back };
    });
    for (let expert = 0; expert < (experts ?? 1); expert++) {
      for (const { line, front, back } of parts) {
        const { name: template, shape, dtype } = line;
        parameters.push(
          experts === undefined
            ? { name: front, template, layer, expert: undefined, shape, dtype }
            : { name: front + expert + back, template, layer, expert, shape, dtype },
        );
      }
    }
  }
}
