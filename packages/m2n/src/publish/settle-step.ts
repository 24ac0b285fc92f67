// SPDX-License-Identifier: Apache-2.0
// Ranks tell each other how a step went, so that all of them take the same decision.

import type { Communicator } from '@nccl-ext/core';
import { textOf } from '@nccl-ext/core/extend';

/** How one rank's step went, as the others see it. */
export interface StepReport {
  /** Whether the step still runs on this rank. */
  readonly running: boolean;
  /** Null when it went well, or still runs. */
  readonly error: string | null;
  /** Whether this rank wrote to any destination. */
  readonly touched: boolean;
}

/** How the step went on this rank; `error` is undefined when it went well. */
export interface StepOutcome {
  readonly error: unknown;
  readonly touched: boolean;
}

/**
 * Collective: every rank's report of the same step, by rank, once it has ended on all of them. A step may take longer than the timeout of
 * a wait, on some ranks much longer than on others: so ranks that still work say so several times per timeout, and only a rank that says
 * nothing is missing.
 */
export async function settleStep(
  communicator: Communicator,
  topic: string,
  step: Promise<StepOutcome>,
): Promise<readonly StepReport[]> {
  for (;;) {
    const outcome = await within(step, communicator.timeoutMs / 4);
    const reports = await exchangeReports(communicator, topic, outcome);
    if (reports.every(({ running }) => !running)) return reports;
  }
}

/** What `step` resolves to, or undefined when it takes longer. */
async function within<T>(step: Promise<T>, milliseconds: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, milliseconds, undefined);
  });
  try {
    return await Promise.race([step, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function exchangeReports(
  communicator: Communicator,
  topic: string,
  outcome: StepOutcome | undefined,
): Promise<readonly StepReport[]> {
  const report: StepReport = {
    running: outcome === undefined,
    error: outcome?.error === undefined ? null : textOf(outcome.error),
    touched: outcome?.touched ?? false,
  };
  const payloads = await communicator.exchange(topic, new TextEncoder().encode(JSON.stringify(report)));
  return payloads.map(parseReport);
}

function parseReport(payload: Uint8Array, rank: number): StepReport {
  try {
    return JSON.parse(new TextDecoder().decode(payload)) as StepReport;
  } catch {
    // A report that cannot be read counts as the worst case.
    return { running: false, error: `the report of rank ${rank} cannot be read`, touched: true };
  }
}
