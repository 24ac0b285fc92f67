// SPDX-License-Identifier: Apache-2.0
// Runs cases one after another and counts.

import type { ConformanceCase } from '../cases/case.js';
import type { CaseResult, RunSummary } from './case-result.js';
import type { ProcessGroup } from './process-group.js';
import { requireShare } from './require-share.js';
import { runCase } from './run-case.js';
import { type WorldFactory, WorldPool } from './world-pool.js';

/** What {@link runCases} takes beside the cases. */
export interface RunOptions {
  /** Makes the worlds, for example on a chosen backend; default `localWorld`. */
  readonly world?: WorldFactory;
  /** Of several processes that run the same cases, each as one rank; it makes the worlds then. */
  readonly processes?: ProcessGroup;
  /** Called after every case. */
  readonly onResult?: (result: CaseResult, done: number, total: number) => void;
  /** Ends the run before the next case; what is left counts as skipped. */
  readonly signal?: AbortSignal;
  /** What reshards pass to `prepareTransfer`; with 0, those that copy engines cannot do alone are skipped. */
  readonly sms?: number | undefined;
}

/**
 * Runs cases in their order. A case that cannot run is a result. It throws when `onResult` does, and when one of several processes is
 * lost: the error names it; and ERR_INVALID_ARGUMENT when ranks have fewer than `sms` SMs.
 *
 * @example
 * ```ts
 * const summary = await runCases(selectCases({ group: 'sharding' }), {
 *   world: (request) => localWorld({ ...request, backend: 'embedded' }),
 * });
 * summary.failed; // 0
 * ```
 */
export async function runCases(
  cases: readonly ConformanceCase[],
  { world, processes, onResult, signal, sms }: RunOptions = {},
): Promise<RunSummary> {
  await processes?.agree(cases.map(({ name }) => name));
  const pool =
    processes === undefined
      ? new WorldPool(world)
      : new WorldPool(
          (request) => processes.world(request),
          () => processes.meet(),
        );
  const results: CaseResult[] = [];
  try {
    await requireShare(pool, cases, sms, processes);
    for (const conformanceCase of cases) {
      const { name, group } = conformanceCase;
      const result: CaseResult = signal?.aborted
        ? { name, group, status: 'skipped', detail: 'the run was ended', ms: 0 }
        : await runCase(pool, conformanceCase, { sms, ...(processes && { processes }) });
      results.push(result);
      onResult?.(result, results.length, cases.length);
    }
  } finally {
    await pool.dispose();
  }
  const count = (status: CaseResult['status']): number =>
    results.filter((result) => result.status === status).length;
  return { passed: count('passed'), failed: count('failed'), skipped: count('skipped'), cases: results };
}
