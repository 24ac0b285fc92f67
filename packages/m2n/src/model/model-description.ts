// SPDX-License-Identifier: Apache-2.0
// What a refit needs to know of a model: its parameters and the few facts that shapes alone do not tell.

import { dtypeBytes } from '@nccl-ext/core';
import type { Parameter } from './parameter.js';

/** The facts of a model that decide how its parameters may be cut. */
export interface ModelFacts {
  /** `model_type` of its configuration, such as `qwen3`; undefined when there is none. */
  readonly family: string | undefined;
  /** Layers that pipeline stages share. */
  readonly layers: number;
  /** Query heads; undefined when neither a configuration nor the shapes tell. */
  readonly heads: number | undefined;
  /** Key and value heads; undefined as `heads`. */
  readonly kvHeads: number | undefined;
  /** Routed experts per layer; 0 for a dense model. */
  readonly experts: number;
  /** Rows and columns of a block that has one scale, for block-quantised weights. */
  readonly quantBlock: readonly [rows: number, columns: number] | undefined;
  /** Whether the output head is the input embedding. */
  readonly tied: boolean;
}

export interface ModelDescription {
  readonly name: string;
  readonly facts: ModelFacts;
  readonly parameters: readonly Parameter[];
}

/** Bytes of all parameters. */
export function parameterBytes(model: ModelDescription): number {
  return model.parameters.reduce((sum, { shape, dtype }) => sum + elementsOf(shape) * dtypeBytes(dtype), 0);
}

/** Elements of a tensor of this shape. */
export function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}
