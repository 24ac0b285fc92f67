// SPDX-License-Identifier: Apache-2.0
// One check for every count, rank, extent and index that meshes and layouts take: a safe integer within bounds, or a typed error.

import type { ErrorCode } from '../errors/codes.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';

/** Returns `value` if it is an integer in [min, max]; else throws `code` and names `field`. */
export function requireInteger(
  code: ErrorCode,
  field: string,
  value: unknown,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) {
    return value === 0 ? 0 : value; // -0 would show up in keys and JSON
  }
  const bounds =
    max === Number.MAX_SAFE_INTEGER ? `of at least ${min} (at most 2^53 - 1)` : `in ${min}..${max}`;
  throw new NcclExtError(code, `${field} must be an integer ${bounds}, got ${describe(value)}`, {
    field,
    expected: bounds,
    seen: value,
  });
}

/** A value as it reads in an error message. */
export function describe(value: unknown): string {
  if (typeof value === 'number') return Object.is(value, -0) ? '0' : String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n (a bigint)`;
  if (value === null || value === undefined || typeof value === 'boolean') return String(value);
  return Array.isArray(value)
    ? `an array of ${value.length}`
    : typeof value === 'object'
      ? 'an object'
      : `a ${typeof value}`;
}
