// SPDX-License-Identifier: Apache-2.0
// Where the memory of groups and handles comes from, when it is the caller's.

import type { BufferRange, DeviceBuffer } from '@nccl-ext/core';

/** What memory is for: one range per group, one per handle. */
export type EpPurpose = 'group' | 'handle';

/** Ranges that the caller has; `epMemory` says their sizes. They start at multiples of 256 bytes and stay the caller's. */
export interface EpOwnMemory {
  readonly group?: DeviceBuffer | BufferRange | undefined;
  /** Called once per handle; what it returns must not be used by another one that lives. */
  readonly handle?: ((bytes: number) => DeviceBuffer | BufferRange) | undefined;
}

/** An allocator: called for every range that is needed, and told when one is needed no more. */
export interface EpAllocator {
  readonly allocate: (bytes: number, purpose: EpPurpose) => DeviceBuffer | BufferRange;
  readonly free?: ((range: DeviceBuffer | BufferRange, purpose: EpPurpose) => void) | undefined;
}

export type EpMemorySource = EpOwnMemory | EpAllocator;
