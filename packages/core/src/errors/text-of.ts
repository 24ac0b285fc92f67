// SPDX-License-Identifier: Apache-2.0
// What users' functions throw may be no error and have no text at all, yet other ranks are told about it.

import { describe } from '../mesh/require-integer.js';

/** An error's name and message; other values as they read in messages. Never throws. */
export function textOf(thrown: unknown): string {
  return thrown instanceof Error ? String(thrown) : describe(thrown);
}
