// SPDX-License-Identifier: Apache-2.0
// What executing a plan needs of it, whether it was just made or stored as JSON.

import type { DType } from '@nccl-ext/core';
import type { TransferProgram } from '@nccl-ext/core/contract';
import type { HeldTensor } from './held-tensors.js';
import type { SideCopy } from './plan-request.js';

/** An entry of a plan's tensor list; moves name it by index. */
export interface PlannedTensor {
  /** The requested tensor. */
  readonly name: string;
  /** Its index in the request. */
  readonly request: number;
  /** Not 0 only where a rank keeps a tensor in several storages: entry `slot` binds the rank's storage number `slot`. */
  readonly slot: number;
  readonly shape: readonly number[];
  readonly sourceDType: DType;
  readonly destinationDType: DType;
  readonly sources: readonly SideCopy[];
  readonly destinations: readonly SideCopy[];
}

export interface ProgramOptions {
  /** Also the table of what arrives; default false. */
  readonly receives?: boolean;
}

/** A `TransferPlan` or a `StoredPlan`. */
export interface ExecutablePlan {
  readonly digest: string;
  readonly worldSize: number;
  readonly tensors: readonly PlannedTensor[];
  program(rank: number, options?: ProgramOptions): TransferProgram;
  sourceTensorsOf(rank: number): readonly HeldTensor[];
  destinationTensorsOf(rank: number): readonly HeldTensor[];
}
