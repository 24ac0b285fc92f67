// SPDX-License-Identifier: Apache-2.0
// The figures of a whole plan. All are bytes in the wire dtype, which is the destination's, unless a name says otherwise.

import type { LinkClass } from '@nccl-ext/core';

/** Sums over all ranks of one execution of the plan. */
export interface PlanTotals {
  /** Entries of the plan's tensor list. */
  readonly tensors: number;
  /** What must travel: over all cells, bytes times the destination ranks that are no source of the cell; aliases once. */
  readonly lowerBoundBytes: number;
  /** What the moves carry between different ranks, forwarding included. */
  readonly wireBytes: number;
  /** What the moves carry between NVLink domains. */
  readonly interDomainBytes: number;
  /** What must pass between domains (W*): over all cells, bytes times the domains that want the cell and have no source. */
  readonly interDomainLowerBoundBytes: number;
  /** What ranks that received a part forward inside their domain; part of `wireBytes`. */
  readonly forwardedBytes: number;
  /** What ranks copy to themselves. */
  readonly localBytes: number;
  /** The most that one source rank sends. */
  readonly maxRankBytes: number;
  /** What a source rank sends on average. */
  readonly meanRankBytes: number;
  /** `self` is `localBytes`; the others sum to `wireBytes`. */
  readonly bytesByLink: Readonly<Record<LinkClass, number>>;
}
