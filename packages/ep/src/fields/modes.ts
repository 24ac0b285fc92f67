// SPDX-License-Identifier: Apache-2.0
// The two modes, which follow from the layout.

import type { EpLayout } from '@nccl-ext/core/contract';

/** Fixed shapes, sends and completes apart, forward only. */
export type LowLatencyLayout = 'expert-major' | 'rank-major';
/** Compact rows, forward and backward. */
export type HighThroughputLayout = 'flat' | 'packed';

export function isLowLatency(layout: EpLayout): layout is LowLatencyLayout {
  return layout === 'expert-major' || layout === 'rank-major';
}
