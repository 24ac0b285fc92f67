// SPDX-License-Identifier: Apache-2.0
// What a refit reports while it runs and when it is done.

import type { BackendInfo } from '@nccl-ext/core';
import type { TransferPlan } from '../plan/transfer-plan.js';

/** The phases, in order; `check` runs with `verify` only. */
export type RefitPhase = 'plan' | 'load' | 'move' | 'check';

/** Bytes done of a phase over all ranks. */
export interface RefitProgress {
  readonly phase: RefitPhase;
  readonly bytes: number;
  readonly totalBytes: number;
}

/** Times are milliseconds, sizes bytes. */
export interface RefitResult {
  readonly ok: true;
  /** Global tensors. */
  readonly tensors: number;
  /** Bytes of all parameters, each once, in the destination's dtypes. */
  readonly parameterBytes: number;
  /** Bytes that moved between different ranks. */
  readonly wireBytes: number;
  /** Bytes that ranks copied to themselves. */
  readonly localBytes: number;
  readonly lowerBoundBytes: number;
  readonly planMs: number;
  readonly loadMs: number;
  readonly prepareMs: number;
  /** From the first grant to the last arrival on the slowest rank; hashing included when verified. */
  readonly transferMs: number;
  readonly checkMs: number;
  /** (wireBytes + localBytes) / transferMs, in 1e9 bytes per second. */
  readonly gigabytesPerSecond: number;
  /** Whether hashes of what arrived and every destination byte were compared. */
  readonly verified: boolean;
  readonly backend: BackendInfo['name'];
  readonly ranks: number;
  readonly version: number | string;
  /** Where the values came from. */
  readonly values: string;
  readonly plan: TransferPlan;
}
