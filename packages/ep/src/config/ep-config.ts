// SPDX-License-Identifier: Apache-2.0
// What a group of expert parallelism is made of, as callers write it.

import type { EpExpansion, EpOverflow, EpReduction } from '@nccl-ext/core/contract';
import type { EpMemorySource } from '../memory/memory-source.js';
import type { ExpertPlacement } from './expert-map.js';

/** Element types of token rows that combine sums. */
export type EpDType = 'f32' | 'f16' | 'bf16';

/** All of it but `memory` must be equal on all ranks. */
export interface EpConfig {
  /** A count, cut evenly and contiguously over the ranks, or a placement: uneven, with redundant replicas. */
  readonly experts: number | ExpertPlacement;
  /** K: experts per token, 1 to 32. */
  readonly topK: number;
  /** H: elements of a token row; a row has a multiple of 16 bytes. */
  readonly hidden: number;
  readonly dtype: EpDType;
  /** M: the most tokens of a rank in one route. */
  readonly maxTokensPerRank: number;
  /**
   * High throughput: rows that a rank receives at most, or `eager` (default): what the caller's output buffer holds, sized from
   * `await handle.counts()` or the worst case. The device checks both.
   */
  readonly receiveBudget?: number | 'eager' | undefined;
  /**
   * Rows beyond a fixed budget. `error` (default): ERR_OVERFLOW on every rank, nothing moves. `drop-by-source`: rows are kept in order of
   * (source rank, token). `drop-by-weight`: rows are kept in order of router weight, largest first.
   */
  readonly overflow?: EpOverflow | undefined;
  /** `rank` (default): combine rounds once per rank and once in the end. `token`: once, over all top-k terms (expert-major and packed). */
  readonly reduction?: EpReduction | undefined;
  /** Low latency: where a row that several experts of a rank want is copied; the bytes are the same. Default `auto`. */
  readonly expand?: EpExpansion | undefined;
  /** SMs that one operation takes at most; default: the backend chooses within the rank's budget. */
  readonly sms?: number | undefined;
  /** Operations in flight at a time, 1 to 64, those of graphs included. Default 4. */
  readonly contexts?: number | undefined;
  /** How long an operation waits for a rank; default that of the communicator. */
  readonly timeoutMs?: number | undefined;
  /** A rank that does not come leaves the group waiting for `changeMembership` instead of unusable. Default false. */
  readonly mask?: boolean | undefined;
  /**
   * A byte (0 to 255) written over the output rows that a dispatch leaves unwritten, and over no others, to find who reads them. Default
   * false: they stay as they are.
   */
  readonly debugFill?: number | false | undefined;
  /** Where group and handle memory comes from; default: the group allocates it. Each rank has its own. */
  readonly memory?: EpMemorySource | undefined;
}
