// SPDX-License-Identifier: Apache-2.0
// The one error class of nccl-ext: a code to branch on, the fields a program needs, and advice a person can follow.

import type { ErrorCode } from './codes.js';

const brand: unique symbol = Symbol.for('nccl-ext.error') as never;

/** What an error knows beside its message. Fields that do not apply are absent. */
export interface ErrorDetails {
  /** What to do about it, one step per line. */
  readonly help?: string;
  /** The rank that reports. */
  readonly rank?: number;
  /** The rank that is missing or at fault. */
  readonly peer?: number;
  /** The operation, as in `transfer` or `barrier`. */
  readonly op?: string;
  /** The parameter or field at fault. */
  readonly field?: string;
  readonly expected?: unknown;
  readonly seen?: unknown;
  readonly cause?: unknown;
}

/**
 * Every error that nccl-ext throws or rejects with.
 *
 * @example
 * ```ts
 * try {
 *   await stream.synchronize();
 * } catch (error) {
 *   if (NcclExtError.is(error) && error.code === 'ERR_TIMEOUT') console.error('missing rank', error.peer);
 *   else throw error;
 * }
 * ```
 */
export class NcclExtError extends Error {
  /** Works across two copies of the package in one process, where `instanceof` does not. */
  static is(value: unknown, code?: ErrorCode): value is NcclExtError {
    return (
      typeof value === 'object' &&
      value !== null &&
      (value as Record<symbol, unknown>)[brand] === true &&
      (code === undefined || (value as NcclExtError).code === code)
    );
  }

  readonly code: ErrorCode;
  readonly help: string | undefined;
  readonly rank: number | undefined;
  readonly peer: number | undefined;
  readonly op: string | undefined;
  readonly field: string | undefined;
  readonly expected: unknown;
  readonly seen: unknown;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(
      details.help === undefined ? message : `${message}\n${details.help}`,
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.code = code;
    this.help = details.help;
    this.rank = details.rank;
    this.peer = details.peer;
    this.op = details.op;
    this.field = details.field;
    this.expected = details.expected;
    this.seen = details.seen;
  }

  /** Only what is known, so that logs stay short. */
  toJSON(): Record<string, unknown> {
    const { name, code, message, help, rank, peer, op, field, expected, seen } = this;
    return Object.fromEntries(
      Object.entries({ name, code, message, help, rank, peer, op, field, expected, seen })
        .filter(([, value]) => value !== undefined)
        // JSON has no bigint; epochs and hashes read as decimal digits.
        .map(([key, value]) => [key, typeof value === 'bigint' ? String(value) : value]),
    );
  }
}

Object.defineProperty(NcclExtError.prototype, 'name', {
  value: 'NcclExtError',
  configurable: true,
  writable: true,
});
Object.defineProperty(NcclExtError.prototype, brand, { value: true });
