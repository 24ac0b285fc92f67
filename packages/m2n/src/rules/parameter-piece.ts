// SPDX-License-Identifier: Apache-2.0
// Finds what each coordinate of a grid of ranks holds of a parameter, from its rule and the sizes of the side.

import { type DimRuns, type DType, dtypeBytes, NcclExtError } from '@nccl-ext/core';
import type { ModelDescription } from '../model/model-description.js';
import type { Parameter } from '../model/parameter.js';
import type { Side } from '../parallel/rank-groups.js';
import { castDType } from './cast-dtype.js';
import { chunk, type Share } from './cut-dimension.js';
import { type Cutting, cutParameter } from './cut-parameter.js';
import type { Interner } from './geometry.js';
import { matchRule, requireRule } from './match-rule.js';
import type { ParameterIndex } from './parameter-index.js';
import type { Rule, RuleSet } from './rule-set.js';
import { rulesError } from './rules-error.js';

/** The ranks of a stage among which a parameter is cut: `tp`; `etp` at the ep coordinate of its expert; ep x etp. */
export type Grid = 'dense' | 'expert' | 'stacked';

/** A parameter on one side, apart from rank numbers. */
export interface Piece {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly rule: Rule;
  readonly grid: Grid;
  readonly cutting: Cutting | undefined;
  /** Per coordinate of the grid, per dimension. */
  readonly held: readonly (readonly DimRuns[])[];
}

export interface PieceContext {
  readonly model: ModelDescription;
  readonly rules: RuleSet;
  readonly side: Side;
  /** The dtype that floats are stored in; undefined keeps theirs. */
  readonly cast: DType | undefined;
  readonly index: ParameterIndex;
  readonly interner: Interner;
}

/** @throws ERR_RULES when there is no rule for the parameter or the rule does not fit it, ERR_CAST when it cannot be cast. */
export function pieceOf(parameter: Parameter, context: PieceContext): Piece {
  const { model, rules, side, index, cast } = context;
  const { name, shape } = parameter;
  const weight = index.weightOf(parameter);
  const rule = ruleOf(parameter, weight, rules);
  const isQuantised = weight !== undefined || index.hasScales(parameter);
  const dtype = cast === undefined ? parameter.dtype : castDType(parameter, rule, cast, isQuantised);
  const grid: Grid = rule.stacked === true ? 'stacked' : parameter.expert === undefined ? 'dense' : 'expert';
  const parts = grid === 'dense' ? side.parallelism.tp : side.parallelism.etp;
  const block = isQuantised ? model.facts.quantBlock : undefined;
  if (weight !== undefined) requireScaleShape(parameter, weight, block);
  const cutting = cutParameter({
    name,
    rule,
    shape: (weight ?? parameter).shape,
    parts,
    facts: model.facts,
    block,
    inBlocks: weight !== undefined,
  });
  const held =
    grid === 'stacked'
      ? heldByGroups(parameter, cutting, context)
      : heldBy(shape, cutting, parts, context.interner);
  return { name, dtype, shape, rule, grid, cutting, held };
}

/** Bytes that a coordinate holds of a piece. */
export function heldBytes({ dtype, held }: Piece, coordinate: number): number {
  return held[coordinate]!.reduce((product, { extent }) => product * extent, dtypeBytes(dtype));
}

/** What coordinates hold of a shape, per dimension. */
export function heldBy(
  shape: readonly number[],
  cutting: Cutting | undefined,
  parts: number,
  interner: Interner,
): readonly (readonly DimRuns[])[] {
  const whole = shape.map((extent) => interner.runs([[0, extent]]));
  if (cutting === undefined) return Array.from({ length: parts }, () => whole);
  return cutting.shares.map((share) => whole.with(cutting.dim, runsOf(share, interner)));
}

/** Experts are the first dimension; the ep coordinates chunk it. */
function heldByGroups(
  { name, shape }: Parameter,
  cutting: Cutting | undefined,
  { interner, side }: PieceContext,
): readonly (readonly DimRuns[])[] {
  if (shape.length === 0 || cutting?.dim === 0) {
    const problem = 'has no dimension of experts beside the one that is cut';
    throw rulesError(`parameter ${JSON.stringify(name)} ${problem}`, { field: name });
  }
  const within = heldBy(shape, cutting, side.parallelism.etp, interner);
  return chunk(shape[0]!, side.parallelism.ep).flatMap((experts) => {
    const runs = interner.runs([experts]);
    return within.map((dims) => dims.with(0, runs));
  });
}

/** Scales are cut as their weight, unless they have a rule of their own. */
function ruleOf(parameter: Parameter, weight: Parameter | undefined, rules: RuleSet): Rule {
  const strict = { ...rules, otherwise: undefined };
  const own = weight === undefined ? undefined : matchRule(strict, parameter.template);
  const { template, name } = weight ?? parameter;
  return own ?? requireRule(rules, template, name);
}

function requireScaleShape(
  scales: Parameter,
  weight: Parameter,
  block: readonly [number, number] | undefined,
): void {
  const expected = weight.shape.map((extent, dim) => {
    const size = block?.[dim - weight.shape.length + 2];
    return size === undefined ? extent : Math.ceil(extent / size);
  });
  if (block !== undefined && expected.join() === scales.shape.join()) return;
  const have = `scales ${JSON.stringify(scales.name)} have shape [${scales.shape.join(', ')}]`;
  const need =
    block === undefined
      ? 'the size of their blocks is not known'
      : `blocks of ${block.join(' x ')} of a weight [${weight.shape.join(', ')}] need [${expected.join(', ')}]`;
  throw rulesError(`${have}, but ${need}`, {
    field: scales.name,
    help: 'quantization_config.weight_block_size of config.json gives the size of the blocks.',
  });
}

function runsOf(share: Share, interner: Interner): DimRuns {
  try {
    return interner.runs(share);
  } catch (cause) {
    // Only blocks can overlap: two segments of a fused tensor in one block of scales.
    if (!NcclExtError.is(cause, 'ERR_LAYOUT')) throw cause;
    throw rulesError('the segments of a fused tensor must begin at quantisation blocks', { cause });
  }
}
