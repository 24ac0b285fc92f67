// SPDX-License-Identifier: Apache-2.0
// What a script learns from the exit code: done, failed, or asked wrongly.

import { type ErrorCode, NcclExtError } from '@nccl-ext/core';
import { Interruption } from './interruption.js';

/** The command did what it was asked. */
export const exitDone = 0;
/** A check failed, or the run did: what was asked makes sense. */
export const exitFailed = 1;
/** The command line, or a file that it names, must change. */
const exitWrongUse = 2;

/** Errors that lie in the command line or in a file that it names; all others are failures of the run. */
const wrongUse: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'ERR_INVALID_ARGUMENT',
  'ERR_MESH',
  'ERR_LAYOUT',
  'ERR_TOPOLOGY',
  'ERR_SHAPE_MISMATCH',
  'ERR_COVERAGE',
  'ERR_OVERLAP',
  'ERR_CAST',
  'ERR_MANIFEST',
  'ERR_CHECKPOINT',
  'ERR_MODEL',
  'ERR_PARALLELISM',
  'ERR_RULES',
]);

/** The exit code for what a command threw; 128 + the number of the signal after an interruption. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Interruption) return error.exitCode;
  return NcclExtError.is(error) && wrongUse.has(error.code) ? exitWrongUse : exitFailed;
}
