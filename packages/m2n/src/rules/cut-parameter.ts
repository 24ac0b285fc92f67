// SPDX-License-Identifier: Apache-2.0
// Applies a rule to a parameter: which dimension is cut, and what each of the ranks that share it has of that dimension.

import type { ModelFacts } from '../model/model-description.js';
import { modelError } from '../model/model-error.js';
import { blocksOf, chunk, type Interval, type Share, scale, shareHeads } from './cut-dimension.js';
import type { Rule } from './rule-set.js';
import { rulesError } from './rules-error.js';

/** One dimension is shared; every rank has all of the others. */
export interface Cutting {
  readonly dim: number;
  /** One share per rank that shares the parameter. */
  readonly shares: readonly Share[];
}

interface CutInput {
  readonly name: string;
  readonly rule: Rule;
  /** Of the parameter; of its weight if the parameter is the scales of a weight. */
  readonly shape: readonly number[];
  /** Ranks that share the parameter. */
  readonly parts: number;
  readonly facts: ModelFacts;
  /** Set where the weight is quantised in blocks of this many rows and columns: blocks are not cut. */
  readonly block: readonly [rows: number, columns: number] | undefined;
  /** The shares are wanted in blocks: the parameter is the scales. */
  readonly inBlocks: boolean;
}

/**
 * The cutting of a parameter, or undefined when every rank has all of it.
 *
 * @throws ERR_MODEL when heads are needed and not known, ERR_RULES when the shape does not consist of them.
 */
export function cutParameter(input: CutInput): Cutting | undefined {
  const { rule, shape, block, inBlocks } = input;
  const dim = cutDim(rule, shape.length);
  if (dim === undefined) return undefined;
  // Blocks are of the last two dimensions.
  const unit = block?.[dim - shape.length + 2];
  const shares = sharesOf(input, shape[dim]!, unit ?? 1);
  if (!inBlocks || unit === undefined) return { dim, shares };
  return { dim, shares: shares.map((share) => blocksOf(share, unit)) };
}

function cutDim(rule: Rule, rank: number): number | undefined {
  const experts = rule.stacked === true ? 1 : 0;
  if (rule.cut === 'replicated') return undefined;
  const dim = rule.dim ?? (rule.cut === 'row' ? experts + 1 : experts);
  // A bias of a layer that is cut by its inputs has nothing to cut.
  return dim < rank ? dim : undefined;
}

function sharesOf(input: CutInput, extent: number, unit: number): readonly Share[] {
  const { rule, parts } = input;
  switch (rule.cut) {
    case 'heads':
    case 'kv-heads': {
      const { heads, kvHeads } = headsOf(input);
      const shares = shareHeads(heads, kvHeads, parts);
      const [count, list] = rule.cut === 'heads' ? [heads, shares.query] : [kvHeads, shares.keyValue];
      return segments([scale(list, headWidth(input, extent, count))]);
    }
    case 'qkv': {
      const { heads, kvHeads } = headsOf(input);
      const { query, keyValue } = shareHeads(heads, kvHeads, parts);
      const width = headWidth(input, extent, heads + 2 * kvHeads);
      return segments([
        scale(query, width),
        scale(keyValue, width, heads * width),
        scale(keyValue, width, (heads + kvHeads) * width),
      ]);
    }
    case 'gate-up': {
      if (extent % 2 !== 0) throw unfit(input, `an extent of ${extent} has no two halves`);
      const half = chunk(extent / 2, parts, unit);
      return segments([half, scale(half, 1, extent / 2)]);
    }
    default:
      return segments([chunk(extent, parts, unit)]);
  }
}

/** One list per segment to one share per rank. */
function segments(lists: readonly (readonly Interval[])[]): readonly Share[] {
  return lists[0]!.map((_, rank) => lists.map((list) => list[rank]!));
}

function headsOf(input: CutInput): { heads: number; kvHeads: number } {
  const { heads, kvHeads } = input.facts;
  if (heads === undefined || kvHeads === undefined) {
    const missing = heads === undefined ? 'num_attention_heads' : 'num_key_value_heads';
    throw modelError(`${input.name} is cut by heads, but ${missing} of the model is not known`, {
      help: `Put its config.json beside the checkpoint, or give {"__config__": {"${missing}": N}} in a model JSON.`,
      field: missing,
    });
  }
  if (heads % kvHeads !== 0)
    throw unfit(input, `${heads} query heads are no multiple of ${kvHeads} key and value heads`);
  return { heads, kvHeads };
}

function headWidth(input: CutInput, extent: number, heads: number): number {
  if (extent % heads !== 0) throw unfit(input, `an extent of ${extent} is no multiple of ${heads} heads`);
  return extent / heads;
}

function unfit({ name, rule }: CutInput, problem: string): Error {
  return rulesError(
    `parameter ${JSON.stringify(name)}: rule ${JSON.stringify(rule.match)} cuts by ${rule.cut}, but ${problem}`,
    {
      field: name,
    },
  );
}
