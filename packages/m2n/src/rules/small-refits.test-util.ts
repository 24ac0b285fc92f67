// SPDX-License-Identifier: Apache-2.0
// Refits of a few made-up parameters by made-up rules.

import { modelFromJson } from '../model/describe-model.js';
import { type RefitInput, refitTensors } from './refit-tensors.js';
import type { RuleSet } from './rule-set.js';

export const tensor = (...shape: number[]) => ({ shape, dtype: 'bf16' });
export const refit = (parameters: Record<string, unknown>, rules: RuleSet, input: Partial<RefitInput> = {}) =>
  refitTensors({
    model: modelFromJson(parameters, 'm'),
    rules,
    from: { parallelism: 'tp=2' },
    to: { parallelism: 'tp=1' },
    ...input,
  });
export const rulesOf = (rest: Partial<RuleSet>): RuleSet => ({ name: 'mine', rules: [], ...rest });
/** The rows and columns of the first copy of the first tensor, by part. */
export const partsOf = (result: ReturnType<typeof refit>) =>
  result.tensors[0]!.source[0]!.pattern.parts.map(({ dims, ranks, byteOffset }) => ({
    dims: dims.map(({ runs }) =>
      runs.map(({ start, length, stride, count }) => [start, length, stride, count]),
    ),
    ranks: [...ranks],
    byteOffset,
  }));
