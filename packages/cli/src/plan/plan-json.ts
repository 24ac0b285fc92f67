// SPDX-License-Identifier: Apache-2.0
// The JSON object of `nccl-ext plan m2n --json`. Times are milliseconds, sizes bytes.

import type { TransferPlan } from '@nccl-ext/m2n';
import type { ModelInput } from '../arguments/model-arguments.js';
import { rounded } from '../output/rounded.js';

/** A plan and how it was asked for. */
export interface PlanFacts {
  readonly input: ModelInput;
  readonly plan: TransferPlan;
  /** From the model to what each side holds. */
  readonly layoutMs: number;
  /** From there to the plan with totals, digest and the program of `rank`. */
  readonly planMs: number;
  readonly rank: number;
  /** Of that rank's program. */
  readonly moves: number;
  readonly files: { readonly output: string | undefined; readonly svg: string | undefined };
}

export function planJson({
  input,
  plan,
  layoutMs,
  planMs,
  rank,
  moves,
  files,
}: PlanFacts): Record<string, unknown> {
  const { prediction } = plan.explain();
  return {
    ok: true,
    model: input.name,
    from: input.from,
    to: input.to,
    ranks: plan.worldSize,
    ...plan.totals,
    patterns: plan.patterns,
    rank,
    moves,
    ...rounded({
      layoutMs,
      planMs,
      predictedMs: prediction.seconds * 1000,
      predictedLowerBoundMs: prediction.lowerBoundSeconds * 1000,
    }),
    ...(prediction.bottleneck === undefined ? {} : { bottleneck: prediction.bottleneck }),
    digest: plan.digest,
    ...(files.output === undefined ? {} : { output: files.output }),
    ...(files.svg === undefined ? {} : { svg: files.svg }),
  };
}
