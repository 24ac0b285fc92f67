// SPDX-License-Identifier: Apache-2.0
// A line of `nccl-ext doctor`.

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
