// SPDX-License-Identifier: Apache-2.0
// How experts plug in: anything that puts its work on a stream and reads the counts on the device.

import type { Stream } from '@nccl-ext/core';
import type { EpLayout } from '@nccl-ext/core/contract';
import type { IndexTensor, WeightTensor } from '../handle/call-options.js';
import type { EpTensor } from '../tensor/tensor.js';

/** What experts get. Everything lies on the device; nothing may be read on the host before the stream has passed. */
export interface ExpertCall {
  readonly stream: Stream;
  readonly layout: EpLayout;
  /** Received rows: [L, R*M, H], [R, M, H] or [N, H] by layout. */
  readonly tokens: EpTensor;
  /** [L], expert-major and packed (padded): rows per local expert; flat: rows per local expert, for information. */
  readonly counts?: IndexTensor | undefined;
  /** [L], packed: first row of each zone. */
  readonly offsets?: IndexTensor | undefined;
  /** [R]: rows per source rank. */
  readonly sourceCounts?: IndexTensor | undefined;
  /** [1], flat and packed: received rows N. */
  readonly total?: IndexTensor | undefined;
  /** flat [N, K], rank-major [R, M, K]: local experts of each row, then -1. */
  readonly topkIdx?: IndexTensor | undefined;
  /** flat [N, K], rank-major [R, M, K], packed [N]: their weights. */
  readonly topkWeights?: WeightTensor | undefined;
  /** The experts of this rank in local order, as ids of the group. */
  readonly localExperts: readonly number[];
  /**
   * Shaped as `tokens`: expert-major: f(x); packed: w * f(x); flat and rank-major: the sum of w * f(x) over the row's experts in top-k order.
   * Rows beyond the counts are read by nobody.
   */
  readonly out: EpTensor;
}

/** Experts of one rank: `hostExperts`, or kernels of your own. */
export interface ExpertLayer {
  /** Enqueues on `call.stream` and returns. Capturable if what it enqueues is. */
  enqueue(call: ExpertCall): void;
}
