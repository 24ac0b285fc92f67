// SPDX-License-Identifier: Apache-2.0
// What a dispatch refuses, by layout, mode, pass and field, before anything is enqueued.

import type { EpLayout } from '@nccl-ext/core/contract';
import { describe, expect, it } from 'vitest';
import { allocateTensor, tensor } from '../tensor/tensor.js';
import {
  comm,
  enqueued,
  make,
  outputs,
  routed,
  stream,
  tokens,
  useWorld,
  weights,
  world,
} from './fake-handle.test-util.js';
import { expectRefused, type Refusal } from './refused-call.test-util.js';

useWorld();

describe('refuses before anything is enqueued', () => {
  const forward = (layout: EpLayout, change: Record<string, unknown>, out: Record<string, unknown> = {}) => {
    const handle = routed(layout);
    const { tokens: rows = tokens(), ...rest } = change;
    handle.dispatch(rows, { stream, weights: weights(), ...rest, out: { ...outputs[layout](), ...out } });
  };

  it.each<Refusal>([
    [
      'tokens of another B',
      'tokens',
      /dispatch, flat \(high throughput\), forward: tokens must be bf16 \[B=3, H=128\], got bf16 \[4, 128\]/,
      () => forward('flat', { tokens: make('bf16', 4, 128) }),
    ],
    [
      'tokens of another dtype',
      'tokens',
      /must be bf16 .*, got f32/,
      () => forward('flat', { tokens: make('f32', 3, 128) }),
    ],
    [
      'missing weights',
      'weights',
      /dispatch, expert-major \(low latency\), forward: weights is missing; wanted f32 \[B=3, K=2\], got none/,
      () => forward('expert-major', { weights: undefined }),
    ],
    [
      'weights in another dtype',
      'weights',
      /must be f32 .*, got bf16/,
      () => forward('packed', { weights: make('bf16', 3, 2) }),
    ],
    [
      'missing outputs',
      'out.expertCounts',
      /is missing; wanted i32 or i64 \[L=2\]/,
      () => forward('expert-major', {}, { expertCounts: undefined }),
    ],
    [
      'outputs of another shape',
      'out.tokens',
      /bf16 \[L=2, R\*M=16, H=128\], got bf16 \[2, 15, 128\]/,
      () => forward('expert-major', {}, { tokens: make('bf16', 2, 15, 128) }),
    ],
    [
      'ids in expert-major',
      'out.topkIdx',
      /is not taken/,
      () => forward('expert-major', {}, { topkIdx: make('i32', 2, 8, 2) }),
    ],
    [
      'ids in packed',
      'out.topkIdx',
      /is not taken/,
      () => forward('packed', {}, { topkIdx: make('i32', 20, 2) }),
    ],
    [
      'weights of another N',
      'out.topkWeights',
      /f32 \[N=20, K=2\], got f32 \[19, 2\]/,
      () => forward('flat', {}, { topkWeights: make('f32', 19, 2) }),
    ],
    [
      'scales without quantization',
      'out.scales',
      /is not taken/,
      () => forward('flat', {}, { scales: make('f32', 20, 1) }),
    ],
    [
      'a quantization without scales',
      'out.scales',
      /is missing; wanted u8 \[N=20, S=4\]/,
      () => forward('flat', { quantization: 'mxfp8' }, { tokens: make('f8e4m3', 20, 128) }),
    ],
    [
      'quantised rows in the payload dtype',
      'out.tokens',
      /must be f8e4m3/,
      () => forward('flat', { quantization: 'fp8' }),
    ],
    [
      'forwarded scales on one side',
      'out.scales',
      /is missing; wanted f32 \[N=20, S=2\]/,
      () => forward('flat', { quantization: 'forward', scales: make('f32', 3, 2) }),
    ],
    [
      'an unknown quantization',
      'quantization',
      /must be none or forward/,
      () => forward('flat', { quantization: 'int8' }),
    ],
    [
      'a backward pass in low latency',
      'pass',
      /dispatch, rank-major \(low latency\), backward: pass must be forward/,
      () => forward('rank-major', { pass: 'backward' }),
    ],
    [
      'weights backward',
      'weights',
      /dispatch, flat \(high throughput\), backward: weights is not taken/,
      () => forward('flat', { pass: 'backward' }),
    ],
    ['an unknown pass', 'pass', /must be forward or backward/, () => forward('flat', { pass: 'sideways' })],
    [
      'sends in high throughput',
      'sendOnly',
      /is for low-latency layouts only/,
      () => forward('flat', { sendOnly: true }),
    ],
    ['global ids without ids', 'ids', /gives no top-k ids/, () => forward('packed', { ids: 'global' })],
    ['unknown ids', 'ids', /must be local or global/, () => forward('flat', { ids: 'both' })],
    ['an unknown option', 'weight', /did you mean weights/, () => forward('flat', { weight: weights() })],
    [
      'no outputs',
      'out',
      /must be an object/,
      () => routed('flat').dispatch(tokens(), { stream, weights: weights() }),
    ],
    [
      'a misaligned start',
      'tokens',
      /must start at a multiple of 16 bytes, not at byte 8/,
      () => forward('flat', { tokens: tensor(comm.allocate(1000), 'bf16', [3, 128], 8) }),
    ],
  ])('%s', (_, field, message, call) => {
    expectRefused(field, message, call);
    expect(enqueued.dispatch).toHaveLength(0);
  });

  it('rows that are no multiple of 16 bytes, and hidden sizes that a block does not divide', () => {
    const change = { hidden: 24, dtype: 'f32' as const };
    const half = routed('flat', change);
    const out = { tokens: make('f8e4m3', 20, 24) };
    const call = (quantization: string) =>
      half.dispatch(make(quantization === 'forward' ? 'f8e4m3' : 'f32', 3, 24), {
        stream,
        weights: weights(),
        quantization,
        out,
      });
    expect(() => call('forward')).toThrow(/tokens has rows of 24 bytes; they must be a multiple of 16/);
    expect(() => call('fp8')).toThrow(/fp8 needs hidden to be a multiple of 128, not 24/);
  });

  it('memory that is too small, foreign, disposed or shared', async () => {
    const gone = tokens();
    await gone.buffer.dispose();
    const foreign = allocateTensor(world.ranks[1]!, 'bf16', [3, 128]);
    const shared = comm.allocate(64 * 256);
    const cases = [
      ['ERR_OUT_OF_BOUNDS', () => forward('flat', { tokens: tensor(comm.allocate(700), 'bf16', [3, 128]) })],
      ['ERR_FOREIGN_OBJECT', () => forward('flat', { tokens: foreign })],
      ['ERR_DISPOSED', () => forward('flat', { tokens: gone })],
      [
        'ERR_OVERLAP',
        () =>
          forward(
            'flat',
            { tokens: tensor(shared, 'bf16', [3, 128], 512) },
            { tokens: tensor(shared, 'bf16', [20, 128]) },
          ),
      ],
    ] as const;
    for (const [code, call] of cases) {
      const field = code === 'ERR_OVERLAP' ? 'out.tokens' : 'tokens';
      expect(call).toThrow(expect.objectContaining({ code, field }));
    }
  });

  it('an output below the fixed budget', () => {
    const handle = routed('flat', { receiveBudget: 21 });
    expect(() =>
      handle.dispatch(tokens(), { stream, weights: weights(), out: { tokens: make('bf16', 20, 128) } }),
    ).toThrow(/at least receiveBudget = 21 rows, got 20/);
    expect(handle.outputShapes('dispatch').tokens.shape).toEqual([21, 128]);
  });
});
