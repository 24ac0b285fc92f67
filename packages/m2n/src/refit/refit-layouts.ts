// SPDX-License-Identifier: Apache-2.0
// What both sides of a refit hold: from a model with rules and parallelisms, or from manifests.

import { type DType, NcclExtError } from '@nccl-ext/core';
import { type JoinedSides, joinSides, type TransferSide } from '../manifest/join-sides.js';
import type { Manifest } from '../manifest/manifest-schema.js';
import { manifestSide } from '../manifest/manifest-side.js';
import { refitSide } from '../manifest/refit-side.js';
import type { ModelDescription } from '../model/model-description.js';
import type { ParallelSizes } from '../parallel/parallelism.js';
import { findRules } from '../rules/find-rules.js';
import { refitTensors } from '../rules/refit-tensors.js';
import type { RuleSet } from '../rules/rule-set.js';

/** How one side holds the model: `tp=4,pp=2`, the sizes, or a manifest. */
export type SideInput = string | ParallelSizes | Manifest;

/** A model and how its two sides hold it. */
export interface RefitSides {
  /** Not needed when both sides are manifests. */
  readonly model?: ModelDescription | undefined;
  /** Default: the rules of the model's family. */
  readonly rules?: RuleSet | undefined;
  readonly from: SideInput;
  readonly to: SideInput;
  /** Names of the storages on each side: a view of the rules, such as `vllm`; default the checkpoint's own names. */
  readonly fromView?: string | undefined;
  readonly toView?: string | undefined;
  /** Both sides begin at rank 0; default: the destination begins behind the source. */
  readonly colocated?: boolean | undefined;
  /** The dtype of floats at a destination that follows rules; default: the one that they have. */
  readonly cast?: DType | undefined;
}

/** The tensors of the planner and the size of the world. */
export type RefitLayouts = Pick<JoinedSides, 'tensors' | 'worldSize'>;

/**
 * The tensors of a refit.
 *
 * @throws ERR_MODEL when a side follows rules and there is no model; ERR_PARALLELISM, ERR_RULES, ERR_MANIFEST, ERR_COVERAGE, ERR_CAST.
 */
export async function refitLayouts(sides: RefitSides): Promise<RefitLayouts> {
  const { from, to, colocated = false } = sides;
  if (!isManifest(from) && !isManifest(to)) return refitTensors(await rulesInput(sides, from, to));
  const source = isManifest(from) ? manifestSide(from, 'source') : await rulesSide(sides, 'source', from);
  const firstRank = colocated ? 0 : source.worldSize;
  const destination = isManifest(to)
    ? manifestSide(to, 'destination', { firstRank })
    : await rulesSide(sides, 'destination', to, firstRank);
  return joinSides(source, destination);
}

/** One side by rules; the other one is as many ranks as come before it. */
async function rulesSide(
  sides: RefitSides,
  role: 'source' | 'destination',
  sizes: string | ParallelSizes,
  firstRank = 0,
): Promise<TransferSide> {
  const before: ParallelSizes = { dp: Math.max(1, firstRank) };
  const input =
    role === 'source' ? await rulesInput(sides, sizes, before) : await rulesInput(sides, before, sizes);
  return refitSide(refitTensors({ ...input, colocated: firstRank === 0 }), role);
}

async function rulesInput(
  { model, rules, fromView, toView, colocated, cast }: RefitSides,
  from: string | ParallelSizes,
  to: string | ParallelSizes,
): Promise<Parameters<typeof refitTensors>[0]> {
  if (model === undefined) {
    throw new NcclExtError('ERR_MODEL', 'A side that is given as parallel sizes needs a model.', {
      field: 'model',
      help: 'Pass a checkpoint or a model, or a manifest for both sides.',
    });
  }
  return {
    model,
    rules: rules ?? (await findRules(model)),
    from: { parallelism: from, ...(fromView === undefined ? {} : { view: fromView }) },
    to: { parallelism: to, ...(toView === undefined ? {} : { view: toView }) },
    ...(colocated === undefined ? {} : { colocated }),
    ...(cast === undefined ? {} : { cast }),
  };
}

function isManifest(side: SideInput): side is Manifest {
  return typeof side === 'object' && side !== null && 'format' in side;
}
