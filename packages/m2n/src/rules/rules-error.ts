// SPDX-License-Identifier: Apache-2.0
// The one way in which rules and what they ask for are refused.

import { NcclExtError } from '@nccl-ext/core';

/** An ERR_RULES; `field` is the parameter or rule at fault. */
export function rulesError(
  message: string,
  details: { field?: string; help?: string; cause?: unknown } = {},
): NcclExtError {
  return new NcclExtError('ERR_RULES', message, details);
}
