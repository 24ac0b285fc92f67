// SPDX-License-Identifier: Apache-2.0
// Scripts can tell wrong use from a failed run and from an interruption.

import { type ErrorCode, NcclExtError } from '@nccl-ext/core';
import { expect, it } from 'vitest';
import { exitCodeOf } from './exit-code.js';
import { Interruption } from './interruption.js';

it.each<[ErrorCode, number]>([
  ['ERR_INVALID_ARGUMENT', 2],
  ['ERR_PARALLELISM', 2],
  ['ERR_MODEL', 2],
  ['ERR_RULES', 2],
  ['ERR_CHECKPOINT', 2],
  ['ERR_MANIFEST', 2],
  ['ERR_TOPOLOGY', 2],
  ['ERR_CAST', 2],
  ['ERR_VERIFY', 1],
  ['ERR_TIMEOUT', 1],
  ['ERR_RANK_LOST', 1],
  ['ERR_OUT_OF_MEMORY', 1],
  ['ERR_BACKEND_MISSING', 1],
  ['ERR_INTERNAL', 1],
])('%s is %i', (code, exit) => {
  expect(exitCodeOf(new NcclExtError(code, 'x'))).toBe(exit);
});

it('is 128 + the number of the signal after an interruption, and 1 for unknown errors', () => {
  expect(exitCodeOf(new Interruption('SIGINT'))).toBe(130);
  expect(exitCodeOf(new Interruption('SIGTERM'))).toBe(143);
  expect(exitCodeOf(new Interruption('SIGHUP'))).toBe(129);
  expect(exitCodeOf(new Error('x'))).toBe(1);
});
