// SPDX-License-Identifier: Apache-2.0
// Ranks tell each other how a step went, so that all of them take the same decision.

import type { Communicator } from '@nccl-ext/core';

/** How one rank's step went, as the others see it. */
export interface StepReport {
  /** Null when it went well. */
  readonly error: string | null;
  /** Whether this rank wrote to any destination. */
  readonly touched: boolean;
}

/** Collective: every rank's report of the same step, by rank. */
export async function settleStep(
  communicator: Communicator,
  topic: string,
  own: { readonly error: unknown; readonly touched: boolean },
): Promise<readonly StepReport[]> {
  const report: StepReport = {
    error: own.error === undefined ? null : String(own.error),
    touched: own.touched,
  };
  const payloads = await communicator.exchange(topic, new TextEncoder().encode(JSON.stringify(report)));
  return payloads.map(parseReport);
}

function parseReport(payload: Uint8Array, rank: number): StepReport {
  try {
    return JSON.parse(new TextDecoder().decode(payload)) as StepReport;
  } catch {
    // A report that cannot be read counts as the worst case.
    return { error: `the report of rank ${rank} cannot be read`, touched: true };
  }
}
