// SPDX-License-Identifier: Apache-2.0
// What a user's kernel gets to wait with a deadline and to report errors as our own kernels do: one parameter by value. Native code has the
// struct from here (native/generated/contract.hpp); `kernel.cuh` of the CUDA packages has the functions on it.

/** Fields in order, each aligned to its size. */
export const kernelGuardFields = [
  /** Address of the error record of the stream or graph, in pinned memory. */
  { name: 'status', type: 'u64' },
  /** Address of the words by which the host stops the rank's kernels, in pinned memory. */
  { name: 'words', type: 'u64' },
  /** Deadline of a wait, in nanoseconds of the global timer. */
  { name: 'timeoutNs', type: 'u64' },
  { name: 'rank', type: 'i32' },
  { name: 'size', type: 'i32' },
] as const;

export const kernelGuardBytes = 32;
