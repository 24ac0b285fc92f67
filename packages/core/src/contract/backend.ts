// SPDX-License-Identifier: Apache-2.0
// What a backend is: information about itself and the parts of the contract that it implements.

import type { EpSpi } from './ep.js';
import type { FaultSpi } from './faults.js';
import type { M2nSpi } from './m2n.js';
import type { RuntimeSpi } from './runtime.js';

/** Raised when the contract changes in a way that older backends cannot follow. */
export const contractVersion = 1;

export type BackendName = 'embedded' | 'cuda12' | 'cuda13';

export interface BackendInfo {
  readonly name: BackendName;
  readonly version: string;
  readonly contractVersion: number;
  /** Facts for `doctor`, such as driver, CUDA and NCCL versions and paths. */
  readonly details: Readonly<Record<string, string>>;
}

export interface Backend {
  readonly info: BackendInfo;
  readonly runtime: RuntimeSpi;
  /** Absent: this backend cannot reshard. */
  readonly m2n?: M2nSpi;
  /** Absent: this backend has no expert parallelism. */
  readonly ep?: EpSpi;
  /** Absent: faults cannot be injected. */
  readonly faults?: FaultSpi;
  /** Ends threads and frees memory. Ranks must have been disposed. */
  dispose(): Promise<void>;
}
