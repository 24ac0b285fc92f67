// SPDX-License-Identifier: Apache-2.0
// What a combine refuses, by layout, pass and field, before anything is enqueued.

import type { EpLayout } from '@nccl-ext/core/contract';
import { describe, expect, it } from 'vitest';
import {
  dispatched,
  enqueued,
  make,
  outputs,
  stream,
  tokens,
  useWorld,
  weights,
} from './fake-handle.test-util.js';
import { expectRefused, type Refusal } from './refused-call.test-util.js';

useWorld();

describe('refuses before anything is enqueued', () => {
  const back = (layout: EpLayout, change: Record<string, unknown>, out: Record<string, unknown> = {}) => {
    const handle = dispatched(layout);
    handle.combine(make('bf16', 20, 128), {
      stream,
      pass: 'backward',
      weights: make('f32', 20, 2),
      ...change,
      out: { tokens: tokens(), topkWeights: weights(), ...out },
    });
  };

  it.each<Refusal>([
    [
      'weights backward in another shape',
      'weights',
      /combine, packed \(high throughput\), backward: weights must be f32 \[N=20\], got f32 \[20, 2\]/,
      () => back('packed', {}),
    ],
    ['missing weights backward', 'weights', /is missing/, () => back('flat', { weights: undefined })],
    [
      'missing gradients of weights',
      'out.topkWeights',
      /is missing; wanted f32 \[B=3, K=2\]/,
      () => back('flat', {}, { topkWeights: undefined }),
    ],
    [
      'weights of combine',
      'weights',
      /combine, expert-major \(low latency\), forward: weights is not taken/,
      () =>
        dispatched('expert-major').combine(outputs['expert-major']().tokens, {
          stream,
          weights: weights(),
          out: { tokens: tokens() },
        }),
    ],
    [
      'a quantization of combine',
      'quantization',
      /must be none or fp8/,
      () =>
        dispatched('flat').combine(make('bf16', 20, 128), {
          stream,
          quantization: 'mxfp8',
          out: { tokens: tokens() },
        }),
    ],
  ])('%s', (_, field, message, call) => {
    expectRefused(field, message, call);
    expect(enqueued.combine).toHaveLength(0);
  });
});
