// SPDX-License-Identifier: Apache-2.0
// From the plain data that a backend reports to the errors that users catch.

import type { ErrorRecord, Outcome, RuntimeSpi, Status } from '../contract/index.js';
import { errorCodeOf } from '../errors/codes.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';

/** The value of an outcome, or the error that its record describes. */
export function unwrap<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw errorFrom(outcome.error);
}

/** Throws the last error of a data-path call that did not return 0. */
export function check(runtime: RuntimeSpi, status: Status): void {
  if (status !== 0) throw errorFrom(runtime.lastError());
}

/** The typed error of a backend's record. */
export function errorFrom(record: ErrorRecord): NcclExtError {
  return new NcclExtError(errorCodeOf(record.code), record.detail, {
    op: record.op,
    ...(record.rank >= 0 ? { rank: record.rank } : {}),
    ...(record.peer >= 0 ? { peer: record.peer } : {}),
    expected: record.expected,
    seen: record.seen,
    ...(record.help === undefined ? {} : { help: record.help }),
    ...(record.cause === undefined ? {} : { cause: record.cause }),
  });
}
