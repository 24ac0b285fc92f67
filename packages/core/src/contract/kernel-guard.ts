// SPDX-License-Identifier: Apache-2.0
// What a user's kernel gets to wait with a deadline and to report errors as our own kernels do: one parameter by value. Native code has the
// struct from here (native/generated/records.hpp); `kernel.cuh` of the CUDA packages has the functions on it.

import type { RecordField } from './device-records.js';

/** Fields in order, each aligned to its size. */
export const kernelGuardFields: readonly RecordField[] = [
  {
    name: 'status',
    type: 'u64',
    initial: 0,
    doc: 'address of the DeviceStatus of the stream or graph, in pinned memory',
  },
  { name: 'words', type: 'u64', initial: 0, doc: 'address of the RankWords of this rank, in pinned memory' },
  {
    name: 'timeoutNs',
    type: 'u64',
    initial: 0,
    doc: 'deadline of a wait, in nanoseconds of the global timer',
  },
  { name: 'rank', type: 'i32', initial: 0, doc: 'of the communicator that launched the kernel' },
  { name: 'size', type: 'i32', initial: 0, doc: 'ranks of that communicator' },
];

export const kernelGuardBytes = 32;
