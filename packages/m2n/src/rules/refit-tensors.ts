// SPDX-License-Identifier: Apache-2.0
// Turns a model, rules and the parallelism of two sides into what the planner takes.

import type { DType } from '@nccl-ext/core';
import type { ModelDescription } from '../model/model-description.js';
import type { Parameter } from '../model/parameter.js';
import { type ParallelSizes, parallelism } from '../parallel/parallelism.js';
import type { Side } from '../parallel/rank-groups.js';
import type { TensorRequest } from '../plan/plan-request.js';
import { Interner } from './geometry.js';
import { ParameterIndex } from './parameter-index.js';
import { type PlacedCopy, Placer } from './place-parameters.js';
import type { RuleSet } from './rule-set.js';
import { type PlacedTensor, type SideStorage, storagesOf } from './side-storages.js';
import { checkpointView } from './view.js';

export interface RefitSide {
  /** `'tp=4,pp=2'` or the sizes. */
  readonly parallelism: string | ParallelSizes;
  /** Names of the storages: a view of the rules; default `checkpoint`, the parameters under their own names. */
  readonly view?: string;
}

export interface RefitInput {
  readonly model: ModelDescription;
  readonly rules: RuleSet;
  readonly from: RefitSide;
  readonly to: RefitSide;
  /** Both sides begin at rank 0; default: the destination begins behind the source. */
  readonly colocated?: boolean;
  /** The dtype of floats at the destination; default: the one that they have. */
  readonly cast?: DType;
}

/** A parameter, with its copies on both sides. */
export interface RefitTensor extends TensorRequest {
  readonly source: readonly PlacedCopy[];
  readonly destination: readonly PlacedCopy[];
}

/** A refit as the planner takes it. */
export interface RefitTensors {
  readonly tensors: readonly RefitTensor[];
  readonly worldSize: number;
  readonly source: Side;
  readonly destination: Side;
  /** What a rank holds of the source, and of the destination. */
  sourceStorages(rank: number): readonly SideStorage[];
  destinationStorages(rank: number): readonly SideStorage[];
}

/**
 * The tensors of a refit of a whole model. Tied parameters are one tensor with a copy in each of their places.
 *
 * @throws ERR_PARALLELISM, ERR_RULES, ERR_MODEL, ERR_CAST.
 * @example
 * ```ts
 * const model = namedModel('Qwen3-0.6B');
 * const rules = await findRules(model);
 * const refit = refitTensors({ model, rules, from: { parallelism: 'tp=4' }, to: { parallelism: 'tp=2,dp=2' } });
 * refit.worldSize; // 8
 * ```
 */
export function refitTensors({ model, rules, from, to, colocated = false, cast }: RefitInput): RefitTensors {
  const source: Side = { parallelism: parallelism(from.parallelism), firstRank: 0 };
  const destination: Side = {
    parallelism: parallelism(to.parallelism),
    firstRank: colocated ? 0 : source.parallelism.ranks,
  };
  const shared = { model, rules, index: new ParameterIndex(model) };
  const interner = new Interner();
  const sender = new Placer({
    ...shared,
    interner,
    side: source,
    view: from.view ?? checkpointView,
    cast: undefined,
  });
  const receiver = new Placer({
    ...shared,
    interner: new Interner(interner),
    side: destination,
    view: to.view ?? checkpointView,
    cast,
  });
  const parameters = distinctParameters(model, rules);
  const copiesOn = (placer: Placer) => (parameter: Parameter) => copiesOf(parameter, placer, model, rules);
  const sources = parameters.map(copiesOn(sender));
  const destinations = parameters.map(copiesOn(receiver));
  const placed = (side: readonly (readonly PlacedCopy[])[]): readonly PlacedTensor[] =>
    parameters.map(({ name }, i) => ({ name, copies: side[i]! }));
  return {
    tensors: parameters.map(({ name }, i) => ({ name, source: sources[i]!, destination: destinations[i]! })),
    worldSize: Math.max(source.parallelism.ranks, destination.firstRank + destination.parallelism.ranks),
    source,
    destination,
    sourceStorages: (rank) => storagesOf(rank, placed(sources)),
    destinationStorages: (rank) => storagesOf(rank, placed(destinations)),
  };
}

/** A tied parameter that a checkpoint holds a second time is the first one. */
function distinctParameters(
  { parameters, facts }: ModelDescription,
  { tied }: RuleSet,
): readonly Parameter[] {
  if (tied === undefined || !facts.tied || !parameters.some(({ name }) => name === tied.to))
    return parameters;
  return parameters.filter(({ name }) => name !== tied.name);
}

function copiesOf(
  parameter: Parameter,
  placer: Placer,
  { facts }: ModelDescription,
  { tied }: RuleSet,
): readonly PlacedCopy[] {
  const copies = placer.copies(parameter);
  if (!facts.tied || parameter.name !== tied?.to) return copies;
  // Where both names lie alike, as on a single stage, an engine has one storage for them.
  const others = placer.copies({ ...parameter, name: tied.name, template: tied.name });
  return [...copies, ...others.filter(({ pattern }) => !copies.some((copy) => copy.pattern === pattern))];
}
