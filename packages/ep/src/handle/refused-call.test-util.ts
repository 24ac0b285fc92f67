// SPDX-License-Identifier: Apache-2.0
// A call that a handle refuses: how a case is written, and what the error must say.

import { expect } from 'vitest';

/** What is wrong, the field that the error names, what it says, and the call. */
export type Refusal = readonly [string, string, RegExp, () => void];

export function expectRefused(field: string, message: RegExp, call: () => void): void {
  expect(call).toThrow(
    expect.objectContaining({
      code: 'ERR_INVALID_ARGUMENT',
      field,
      message: expect.stringMatching(message),
    }),
  );
}
