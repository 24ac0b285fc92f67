// SPDX-License-Identifier: Apache-2.0
// What a call is refused with.

import { NcclExtError } from '@nccl-ext/core';

export function refusal(work: () => unknown): NcclExtError {
  try {
    work();
  } catch (error) {
    if (NcclExtError.is(error)) return error;
    throw error;
  }
  throw new Error('was accepted');
}
