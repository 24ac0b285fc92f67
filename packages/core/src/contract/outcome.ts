// SPDX-License-Identifier: Apache-2.0
// How a backend reports: values and error records, never exceptions, so that native code and workers can do the same.

/** What a device, worker or host call writes when it fails. */
export interface ErrorRecord {
  /** A number of `errorNumbers`; 0 is no error. */
  readonly code: number;
  /** The operation, as in `transfer`, `barrier`, `allocate`. */
  readonly op: string;
  /** The rank that reports, -1 when it is not known. */
  readonly rank: number;
  /** The rank that is missing or at fault, -1 when there is none. */
  readonly peer: number;
  /** What was waited for or allowed: an epoch, a size, a hash. */
  readonly expected: number | bigint | string;
  /** What was there instead. */
  readonly seen: number | bigint | string;
  /** A sentence for people. */
  readonly detail: string;
  /** What to do about it, when the backend knows. */
  readonly help?: string;
  /** What a call on the host threw; absent where nothing was thrown. */
  readonly cause?: unknown;
}

/** A value, or the record that says why there is none. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: ErrorRecord };

/** Result of a data-path call: 0, or the number of an error whose record `lastError()` holds. */
export type Status = number;
