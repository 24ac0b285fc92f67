// SPDX-License-Identifier: Apache-2.0
// Refuses fields of a request that are of the wrong kind, before a model is loaded for nothing or `verified` says what was not asked for.

import { NcclExtError } from '@nccl-ext/core';
import { describe } from '@nccl-ext/core/extend';
import type { RefitRequest } from './refit.js';
import type { RefitSides } from './refit-layouts.js';

/** What a field must be, in words and as a question. Those not listed are checked where they are read. */
interface Kind {
  readonly wanted: string;
  readonly fits: (value: unknown) => boolean;
}

const truth: Kind = { wanted: 'true or false', fits: (value) => typeof value === 'boolean' };
const view: Kind = { wanted: 'the name of a view', fits: (value) => typeof value === 'string' };

const sides = {
  model: {
    wanted: 'a model as describeModel or describeCheckpoint gives it',
    fits: (value) => isObject(field(value, 'facts')) && Array.isArray(field(value, 'parameters')),
  },
  rules: { wanted: 'rules as findRules gives them', fits: (value) => Array.isArray(field(value, 'rules')) },
  fromView: view,
  toView: view,
  colocated: truth,
} satisfies { [N in keyof RefitSides]?: Kind };

const run = {
  checkpoint: {
    wanted: 'a checkpoint as openCheckpoint gives it',
    fits: (value) => typeof field(value, 'readSlice') === 'function',
  },
  verify: truth,
  check: truth,
  version: {
    wanted: 'a string or a finite number',
    fits: (value) => typeof value === 'string' || Number.isFinite(value),
  },
  transferSms: {
    wanted: 'a non-negative integer',
    fits: (value) => Number.isInteger(value) && (value as number) >= 0,
  },
  onProgress: { wanted: 'a function', fits: (value) => typeof value === 'function' },
  signal: { wanted: 'an AbortSignal', fits: (value) => value instanceof AbortSignal },
} satisfies { [N in keyof RefitRequest]?: Kind };

/** @throws ERR_INVALID_ARGUMENT naming the first field of the wrong kind. */
export function checkSides(request: RefitSides): void {
  checkFields(request, sides);
}

/** As {@link checkSides}, for all of a {@link RefitRequest}. */
export function checkRequest(request: RefitRequest): void {
  checkFields(request, { ...sides, ...run });
}

function checkFields(request: object, kinds: Readonly<Record<string, Kind>>): void {
  for (const [name, { wanted, fits }] of Object.entries(kinds)) {
    const value = field(request, name);
    if (value === undefined || fits(value)) continue;
    throw new NcclExtError('ERR_INVALID_ARGUMENT', `${name} must be ${wanted}, got ${describe(value)}.`, {
      field: name,
      expected: wanted,
      seen: value,
    });
  }
}

function field(value: unknown, name: string): unknown {
  return isObject(value) ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
