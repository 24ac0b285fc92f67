// SPDX-License-Identifier: Apache-2.0
// Checks of the numbers and lists that helpers on the host take.

import { NcclExtError } from '@nccl-ext/core';
import { describe, nearestName } from '@nccl-ext/core/extend';

export function invalid(field: string, rule: string, seen: unknown): NcclExtError {
  return new NcclExtError('ERR_INVALID_ARGUMENT', `${field} ${rule}, got ${describe(seen)}.`, {
    field,
    seen,
  });
}

/** Throws ERR_INVALID_ARGUMENT unless `value` is an integer from `min` to `max`. */
export function requireCount(
  field: string,
  value: unknown,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
): void {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return;
  const bounds = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  throw invalid(field, `must be an integer ${bounds}`, value);
}

/** Throws ERR_INVALID_ARGUMENT when `value`, called `place`, has a property that is none of `known`: it would be ignored. */
export function requireNames(place: string, value: object, known: readonly string[]): void {
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const near = nearestName(unknown, known);
  const hint = near === undefined ? `there are ${known.join(', ')}` : `did you mean ${near}?`;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `${unknown} is unknown in ${place}; ${hint}`, {
    field: unknown,
  });
}

/** Throws ERR_INVALID_ARGUMENT unless `value` is an array or a typed array. */
export function requireList(field: string, value: unknown): void {
  if (Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) return;
  throw invalid(field, 'must be an array or a typed array', value);
}
