// SPDX-License-Identifier: Apache-2.0
// One parameter of a model, with the parts of its name that rules and pipeline stages need.

import type { DType } from '@nccl-ext/core';

/** A named tensor of a model. */
export interface Parameter {
  readonly name: string;
  /** The name with its layer and expert numbers written `{layer}` and `{expert}`; the same string for all of them. */
  readonly template: string;
  /** The number behind `layers.`, `layer.`, `blocks.`, `block.` or `h.`; undefined outside of layers. */
  readonly layer: number | undefined;
  /** The number behind `experts.`; undefined outside of experts. */
  readonly expert: number | undefined;
  /** In elements of `dtype`. Parameters of equal shape may share one array. */
  readonly shape: readonly number[];
  readonly dtype: DType;
}

const layerNumber = /(^|\.)(layers?|blocks?|h)\.(\d+)(?=\.|$)/;
const expertNumber = /(^|\.)experts\.(\d+)(?=\.|$)/;

/**
 * A parameter, with template, layer and expert taken from its name.
 *
 * @example
 * ```ts
 * parameterOf('model.layers.3.mlp.experts.12.up_proj.weight', [768, 2048], 'bf16').template;
 * // 'model.layers.{layer}.mlp.experts.{expert}.up_proj.weight'
 * ```
 */
export function parameterOf(name: string, shape: readonly number[], dtype: DType): Parameter {
  let layer: number | undefined;
  let expert: number | undefined;
  const template = name
    .replace(layerNumber, (_match, before: string, word: string, digits: string) => {
      layer = Number(digits);
      return `${before}${word}.{layer}`;
    })
    .replace(expertNumber, (_match, before: string, digits: string) => {
      expert = Number(digits);
      return `${before}experts.{expert}`;
    });
  return { name, template, layer, expert, shape, dtype };
}
