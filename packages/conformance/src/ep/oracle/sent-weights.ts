// SPDX-License-Identifier: Apache-2.0
// The weight that goes with an entry: as it was passed, or divided by the sum of what is live.

import type { RankInputs, StepRules } from './expected-step.js';
import { type Entry, entriesOf, renormalised } from './routing.js';

/** The weight of an entry as it travels and as expert-major sums by it. */
export function weightsAsSent(rules: StepRules, inputs: readonly RankInputs[]): (entry: Entry) => number {
  if (!rules.renormalize) return ({ weight }) => weight;
  const all = entriesOf(
    rules.placement,
    rules.topK,
    inputs.map(({ routing }) => routing),
  );
  const keyOf = ({ source, token, k }: Entry): string => `${source}/${token}/${k}`;
  const weights = new Map(renormalised(all).map((entry) => [keyOf(entry), entry.weight]));
  return (entry) => weights.get(keyOf(entry))!;
}
