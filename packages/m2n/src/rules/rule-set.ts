// SPDX-License-Identifier: Apache-2.0
// Says as data how the parameters of a model family are cut over ranks, and under which names an engine stores them.

import { z } from 'zod';
import { rulesError } from './rules-error.js';

/**
 * How a parameter is cut over tensor-parallel ranks. Cuts follow torch.chunk: shards of ceil(n / ranks), the last ones
 * short or empty.
 *
 * - `replicated`: every rank has all of it.
 * - `column`: by rows of the stored [out, in] weight, that is by outputs.
 * - `row`: by its columns, that is by inputs; a bias is replicated.
 * - `vocab`: by rows, as `column`; for embeddings and heads.
 * - `heads`: by whole query heads, which stay with their key and value heads.
 * - `kv-heads`: by whole key and value heads; where there are more ranks than heads, rank r has head floor(r x heads / ranks).
 * - `qkv`: query, key and value rows of one fused tensor, each by its heads; local order is query, key, value.
 * - `gate-up`: two halves of one fused tensor, each by rows; local order is gate, up.
 */
export type Cut = 'replicated' | 'column' | 'row' | 'vocab' | 'heads' | 'kv-heads' | 'qkv' | 'gate-up';

/** What happens to the parameters that `match` names. Of several rules that match, the first holds. */
export interface Rule {
  /** A name with `{layer}` and `{expert}` for numbers; `*` stands for any characters. */
  readonly match: string;
  readonly cut: Cut;
  /** The dimension that is cut, if it is not the usual one. */
  readonly dim?: number | undefined;
  /** The pipeline stage: of its layer (default where the name has one), `first`, `last` (default elsewhere) or `every`. */
  readonly stage?: 'first' | 'last' | 'every' | undefined;
  /** One tensor has the experts of a layer as its first dimension; names with `{expert}` are experts anyway. */
  readonly stacked?: boolean | undefined;
  /** Keeps its dtype when a cast is asked for; default false. */
  readonly keepDType?: boolean | undefined;
}

/** Names of the parameters that a storage joins, or of the storages that a parameter is split into. */
export interface ViewEntry {
  /** Parameters, templates as in {@link Rule.match}; a `*` at the end carries over to `into`. */
  readonly from: readonly string[];
  /**
   * One storage: it has the rows of all parameters of `from` in this order; without `{expert}` where `from` has it, it has
   * the local experts as its first dimension. Several storages for one `qkv` or `gate-up` parameter: its parts.
   */
  readonly into: readonly string[];
}

export interface RuleSet {
  readonly name: string;
  readonly rules: readonly Rule[];
  /** A parameter that is the same tensor as another one, if the model ties them. */
  readonly tied?: { readonly name: string; readonly to: string } | undefined;
  /** What happens to parameters without a rule; default is an error. */
  readonly otherwise?: 'replicated' | undefined;
  /** Names of storages by view. The view `checkpoint` always exists: every parameter under its own name. */
  readonly views?: Readonly<Record<string, readonly ViewEntry[]>> | undefined;
}

const template = z
  .string()
  .min(1)
  .refine((text) => !/(^|\.)(layers?|blocks?|h|experts)\.\d+(\.|$)/.test(text), {
    error: 'write {layer} and {expert} instead of numbers',
  });

const cuts: readonly Cut[] = ['replicated', 'column', 'row', 'vocab', 'heads', 'kv-heads', 'qkv', 'gate-up'];

const ruleSchema: z.ZodType<Rule> = z.strictObject({
  match: template,
  cut: z.enum(cuts),
  dim: z.int().nonnegative().optional(),
  stage: z.enum(['first', 'last', 'every']).optional(),
  stacked: z.boolean().optional(),
  keepDType: z.boolean().optional(),
});

const viewEntrySchema: z.ZodType<ViewEntry> = z
  .strictObject({ from: z.array(template).min(1), into: z.array(template).min(1) })
  .refine(({ from, into }) => from.length === 1 || into.length === 1, {
    error: 'either from or into must have one name',
  })
  .refine(
    ({ from, into }) => isConsistent([...from, ...into], (name) => name.indexOf('*') === name.length - 1),
    {
      error: 'either all names or none end in *, and * may only stand at the end',
    },
  );

function isConsistent(names: readonly string[], endsInStar: (name: string) => boolean): boolean {
  return names.every((name) => !name.includes('*')) || names.every(endsInStar);
}

const ruleSetSchema: z.ZodType<RuleSet> = z.strictObject({
  name: z.string().min(1),
  rules: z.array(ruleSchema),
  tied: z.strictObject({ name: template, to: template }).optional(),
  otherwise: z.literal('replicated').optional(),
  views: z.record(z.string(), z.array(viewEntrySchema)).optional(),
});

/**
 * Checks a parsed file of rules; `source` names it in errors.
 *
 * @throws ERR_RULES naming the rule and the field.
 */
export function parseRuleSet(json: unknown, source: string): RuleSet {
  const result = ruleSetSchema.safeParse(json);
  if (result.success) return result.data;
  throw rulesError(`${source}: ${z.prettifyError(result.error)}`, { field: source });
}
