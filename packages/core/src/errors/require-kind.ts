// SPDX-License-Identifier: Apache-2.0
// JavaScript callers pass anything anywhere: the argument that is of the wrong kind is named, instead of a TypeError from inside.

import { describe } from '../mesh/require-integer.js';
import type { ErrorCode } from './codes.js';
import { NcclExtError } from './nccl-ext-error.js';

/** Throws `code` (ERR_INVALID_ARGUMENT by default) unless `value` is an object and no array, such as the options of a call. */
export function requireObject(
  field: string,
  value: unknown,
  code: ErrorCode = 'ERR_INVALID_ARGUMENT',
): asserts value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw wrongKind(code, field, 'an object', value);
}

export function requireArray(
  field: string,
  value: unknown,
  code: ErrorCode = 'ERR_INVALID_ARGUMENT',
): asserts value is readonly unknown[] {
  if (!Array.isArray(value)) throw wrongKind(code, field, 'an array', value);
}

export function requireText(
  field: string,
  value: unknown,
  code: ErrorCode = 'ERR_INVALID_ARGUMENT',
): asserts value is string {
  if (typeof value !== 'string') throw wrongKind(code, field, 'a string', value);
}

export function requireFunction(field: string, value: unknown): void {
  if (typeof value !== 'function') throw wrongKind('ERR_INVALID_ARGUMENT', field, 'a function', value);
}

function wrongKind(code: ErrorCode, field: string, wanted: string, seen: unknown): NcclExtError {
  return new NcclExtError(code, `${field} must be ${wanted}, got ${describe(seen)}`, {
    field,
    expected: wanted,
    seen,
  });
}
