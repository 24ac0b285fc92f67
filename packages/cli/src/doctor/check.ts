// SPDX-License-Identifier: Apache-2.0
// A line of `nccl-ext doctor`.

import { NcclExtError } from '@nccl-ext/core';

/**
 * - `ok`: works.
 * - `absent`: not there and not needed for what runs now; `fix` says how to get it.
 * - `warning`: has no effect, or another one than meant; `fix` says what was probably meant.
 * - `failed`: broken, or in the way; `fix` says what to do.
 */
export type CheckStatus = 'ok' | 'absent' | 'warning' | 'failed';

export interface Check {
  readonly name: string;
  readonly status: CheckStatus;
  /** What was found. */
  readonly found: string;
  /** Present unless `ok`. */
  readonly fix?: string;
}

export function ok(name: string, found: string): Check {
  return { name, status: 'ok', found };
}

export function absent(name: string, fix: string): Check {
  return { name, status: 'absent', found: 'not available', fix };
}

export function warning(name: string, found: string, fix: string): Check {
  return { name, status: 'warning', found, fix };
}

export function failed(name: string, found: string, fix: string): Check {
  return { name, status: 'failed', found, fix };
}

/** What to do about an error where `otherwise` is the last resort. A wrong variable has a line that says what is allowed. */
export function fixOf(error: unknown, otherwise: string): string {
  if (!NcclExtError.is(error)) return otherwise;
  if (error.help === undefined && error.code === 'ERR_INVALID_ARGUMENT' && error.field !== undefined)
    return `See the line ${error.field}.`;
  return error.help ?? otherwise;
}
