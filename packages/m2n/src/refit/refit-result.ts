// SPDX-License-Identifier: Apache-2.0
// What a refit reports while it runs and when it is done.

import type { BackendInfo } from '@nccl-ext/core';
import type { TransferPlan } from '../plan/transfer-plan.js';
import type { PublishTimes } from '../publish/publish-times.js';

/** The phases, in order; `check` runs where it is asked for. `move` and `check` come once per repeat. */
export type RefitPhase = 'plan' | 'load' | 'move' | 'check';

/** Bytes done of a phase over all ranks. */
export interface RefitProgress {
  readonly phase: RefitPhase;
  readonly bytes: number;
  readonly totalBytes: number;
}

/** What one refit of prepared weights took: each step on its slowest rank, in milliseconds. */
export interface RefitTimes extends PublishTimes {
  /** Comparing every destination byte with its source, after the new version is served; 0 without `check`. */
  readonly checkMs: number;
}

/** Times are milliseconds, sizes bytes. Those of {@link RefitTimes} are medians over all repeats. */
export interface RefitResult extends RefitTimes {
  readonly ok: true;
  /** Global tensors. */
  readonly tensors: number;
  /** Bytes of all parameters, each once, in the destination's dtypes. */
  readonly parameterBytes: number;
  /** Bytes that moved between different ranks, in one repeat. */
  readonly wireBytes: number;
  /** Bytes that ranks copied to themselves. */
  readonly localBytes: number;
  readonly lowerBoundBytes: number;
  readonly planMs: number;
  /** Allocation of all shards and their values. */
  readonly loadMs: number;
  readonly prepareMs: number;
  /** One entry per repeat, in order: the first one has what only a first execution costs. */
  readonly repeats: readonly RefitTimes[];
  /** (wireBytes + localBytes) / moveMs, in 1e9 bytes per second. */
  readonly gigabytesPerSecond: number;
  /** Whether hashes of what was sent and what arrived were compared, which is part of the move. */
  readonly hashed: boolean;
  /** Whether every destination byte was compared with its source's value, in every repeat. */
  readonly verified: boolean;
  readonly backend: BackendInfo['name'];
  readonly ranks: number;
  /** Device of each rank, by rank. */
  readonly devices: readonly number[];
  /** Of the last repeat. */
  readonly version: number | string;
  /** Where the values came from. */
  readonly values: string;
  readonly plan: TransferPlan;
}
