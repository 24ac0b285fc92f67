// SPDX-License-Identifier: Apache-2.0
// A GPU as a probe describes it.

import type { ProbedDevice } from '@nccl-ext/core/contract';

export function gpu(index: number, peers: readonly number[] = []): ProbedDevice {
  return {
    index,
    name: 'NVIDIA H200',
    uuid: `GPU-00000000-0000-0000-0000-00000000000${index}`,
    computeCapability: '9.0',
    multiprocessors: 132,
    memoryBytes: 150_754_820_096,
    peers,
  };
}
