// SPDX-License-Identifier: Apache-2.0
// What came of cases.

import type { GroupName } from '../cases/groups.js';

/** One case. */
export interface CaseResult {
  readonly name: string;
  readonly group: GroupName;
  readonly status: 'passed' | 'failed' | 'skipped';
  /** Why it failed or was skipped; empty when it passed. */
  readonly detail: string;
  readonly ms: number;
}

/** All cases of a run. */
export interface RunSummary {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly cases: readonly CaseResult[];
}
