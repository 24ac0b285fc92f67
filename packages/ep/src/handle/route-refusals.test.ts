// SPDX-License-Identifier: Apache-2.0
// What a route refuses, by layout and field, before anything is enqueued.

import type { EpLayout } from '@nccl-ext/core/contract';
import { describe, expect, it } from 'vitest';
import type { EpConfig } from '../config/ep-config.js';
import { enqueued, handleOf, ids, make, stream, useWorld } from './fake-handle.test-util.js';
import { expectRefused, type Refusal } from './refused-call.test-util.js';

useWorld();

describe('refuses before anything is enqueued', () => {
  const route = (change: Partial<EpConfig>, layout: EpLayout, topkIdx: unknown, options: object = {}) =>
    handleOf(layout, change).route(topkIdx, { stream, ...options });

  it.each<Refusal>([
    [
      'ids of floats',
      'topkIdx',
      /route, flat \(high throughput\), forward: topkIdx must be i32 or i64 \[B, K=2\], got f32 \[3, 2\]/,
      () => route({}, 'flat', make('f32', 3, 2)),
    ],
    [
      'ids of another K',
      'topkIdx',
      /\[B, K=2\], got i32 \[3, 3\]/,
      () => route({}, 'rank-major', make('i32', 3, 3)),
    ],
    [
      'more tokens than agreed',
      'topkIdx',
      /9 tokens; maxTokensPerRank is 8/,
      () => route({}, 'packed', make('i32', 9, 2)),
    ],
    ['what is no tensor', 'topkIdx', /must be a tensor/, () => route({}, 'packed', new Int32Array(6))],
    [
      'counts in low latency',
      'counts.total',
      /is not taken; .* topkIdx/,
      () => route({}, 'expert-major', ids(), { counts: { total: make('i32', 1) } }),
    ],
    [
      'offsets of flat',
      'counts.expertOffsets',
      /is not taken/,
      () => route({}, 'flat', ids(), { counts: { expertOffsets: make('i32', 2) } }),
    ],
    [
      'an unknown count',
      'counts.totals',
      /did you mean total/,
      () => route({}, 'flat', ids(), { counts: { totals: make('i32', 1) } }),
    ],
    [
      'drops by weight without weights',
      'weights',
      /drop-by-weight wants f32 \[B=3, K=2\]/,
      () => route({ receiveBudget: 8, overflow: 'drop-by-weight' }, 'flat', ids()),
    ],
    [
      'counts of another length',
      'counts.expertCounts',
      /\[L=2\], got i32 \[3\]/,
      () => route({}, 'flat', ids(), { counts: { expertCounts: make('i32', 3) } }),
    ],
  ])('%s', (_, field, message, call) => {
    expectRefused(field, message, call);
    expect(enqueued.route).toHaveLength(0);
  });
});
