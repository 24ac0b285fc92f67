// SPDX-License-Identifier: Apache-2.0
// The JSON object of `nccl-ext refit --json`. Times are milliseconds, sizes bytes.

import type { RefitResult } from '@nccl-ext/m2n';
import type { ModelInput } from '../arguments/model-arguments.js';
import { rounded } from '../output/rounded.js';

/** A finished refit and how it was asked for. */
export interface RefitFacts {
  readonly result: RefitResult;
  readonly input: ModelInput;
  /** Path of the report, if one was written. */
  readonly report: string | undefined;
  readonly backendReason: string;
}

export function refitJson({ result, input, report }: RefitFacts): Record<string, unknown> {
  const { plan, repeats, ...facts } = result;
  return {
    ...rounded(facts),
    repeats: repeats.map(rounded),
    model: input.name,
    from: input.from,
    to: input.to,
    digest: plan.digest,
    ...(report === undefined ? {} : { report }),
  };
}
