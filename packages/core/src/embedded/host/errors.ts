// SPDX-License-Identifier: Apache-2.0
// Makes the error records that host calls return.

import type { ErrorRecord, Outcome } from '../../contract/index.js';
import { type ErrorCode, errorNumbers } from '../../errors/codes.js';

interface ErrorFields {
  readonly rank?: number;
  readonly peer?: number;
  readonly expected?: number | bigint | string;
  readonly seen?: number | bigint | string;
  readonly help?: string;
}

/** A record; fields that do not apply may be left out. */
export function errorRecord(
  code: ErrorCode,
  op: string,
  detail: string,
  fields: ErrorFields = {},
): ErrorRecord {
  return {
    code: errorNumbers[code],
    op,
    rank: fields.rank ?? -1,
    peer: fields.peer ?? -1,
    expected: fields.expected ?? '',
    seen: fields.seen ?? '',
    detail,
    ...(fields.help === undefined ? {} : { help: fields.help }),
  };
}

/** Whether a look-up gave an error record instead of what was looked for. */
export function isError(value: object): value is ErrorRecord {
  return 'code' in value;
}

export function failed<T>(error: ErrorRecord): Outcome<T> {
  return { ok: false, error };
}

export function succeeded<T>(value: T): Outcome<T> {
  return { ok: true, value };
}

/** An integer from `least` to `most`, or the record that says so. */
export function checkInteger(
  op: string,
  name: string,
  value: number,
  least: number,
  most: number,
): ErrorRecord | undefined {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return undefined;
  return errorRecord(
    'ERR_INVALID_ARGUMENT',
    op,
    `${name} is ${value}; it must be an integer from ${least} to ${most}`,
    {
      expected: `${least} to ${most}`,
      seen: String(value),
    },
  );
}
