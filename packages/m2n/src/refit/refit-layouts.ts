// SPDX-License-Identifier: Apache-2.0
// What both sides of a refit hold: from a model with rules and parallelisms.

import type { DType } from '@nccl-ext/core';
import type { ModelDescription } from '../model/model-description.js';
import type { ParallelSizes } from '../parallel/parallelism.js';
import { findRules } from '../rules/find-rules.js';
import { type RefitTensors, refitTensors } from '../rules/refit-tensors.js';
import type { RuleSet } from '../rules/rule-set.js';

/** A model and how its two sides hold it. */
export interface RefitSides {
  readonly model: ModelDescription;
  /** Default: the rules of the model's family. */
  readonly rules?: RuleSet | undefined;
  /** As in `tp=4,pp=2`. */
  readonly from: string | ParallelSizes;
  readonly to: string | ParallelSizes;
  /** Names of the storages on each side: a view of the rules, such as `vllm`; default the checkpoint's own names. */
  readonly fromView?: string | undefined;
  readonly toView?: string | undefined;
  /** Both sides begin at rank 0; default: the destination begins behind the source. */
  readonly colocated?: boolean | undefined;
  /** The dtype of floats at the destination; default: the one that they have. */
  readonly cast?: DType | undefined;
}

/** The tensors of the planner, and which ranks are which side. */
export type RefitLayouts = RefitTensors;

/** The tensors of a refit. */
export async function refitLayouts(sides: RefitSides): Promise<RefitLayouts> {
  const { model, from, to, fromView, toView, colocated, cast } = sides;
  const rules = sides.rules ?? (await findRules(model));
  return refitTensors({
    model,
    rules,
    from: { parallelism: from, ...(fromView === undefined ? {} : { view: fromView }) },
    to: { parallelism: to, ...(toView === undefined ? {} : { view: toView }) },
    ...(colocated === undefined ? {} : { colocated }),
    ...(cast === undefined ? {} : { cast }),
  });
}
