// SPDX-License-Identifier: Apache-2.0
// What is free on a rank's GPU.

import { type Communicator, NcclExtError } from '@nccl-ext/core';

/** More than any GPU has. */
const impossibleBytes = 2 ** 50;

/** Free bytes of a rank's GPU, as the error says that refuses too much; undefined on the embedded backend. */
export function freeDeviceBytes(communicator: Communicator): number | undefined {
  if (communicator.device.multiprocessors === 0) return undefined;
  try {
    communicator.allocate(impossibleBytes, 'plain');
  } catch (error) {
    if (NcclExtError.is(error, 'ERR_OUT_OF_MEMORY') && typeof error.expected === 'number')
      return error.expected;
    throw error;
  }
  throw new Error(`${impossibleBytes} bytes could be allocated`);
}
