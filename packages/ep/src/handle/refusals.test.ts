// SPDX-License-Identifier: Apache-2.0
// What a handle refuses, by layout, mode, pass and field, before anything is enqueued.

import type { EpLayout } from '@nccl-ext/core/contract';
import { beforeEach, describe, expect, it } from 'vitest';
import type { EpConfig } from '../config/ep-config.js';
import { EpGroup } from '../group/ep-group.js';
import { claimNothing, fakeCore } from '../group/fake-core.test-util.js';
import { allocateTensor, tensor } from '../tensor/tensor.js';
import {
  comm,
  config,
  dispatched,
  enqueued,
  handleOf,
  ids,
  make,
  outputs,
  routed,
  stream,
  tokens,
  useWorld,
  weights,
  world,
} from './fake-handle.test-util.js';

useWorld();

type Refusal = readonly [string, string, RegExp, () => void];

describe('refuses before anything is enqueued', () => {
  let before: number;
  beforeEach(() => {
    before = 0;
  });
  const forward = (layout: EpLayout, change: Record<string, unknown>, out: Record<string, unknown> = {}) => {
    const handle = routed(layout);
    before = enqueued.dispatch.length;
    const { tokens: rows = tokens(), ...rest } = change;
    handle.dispatch(rows, { stream, weights: weights(), ...rest, out: { ...outputs[layout](), ...out } });
  };
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
    expect(call).toThrow(
      expect.objectContaining({
        code: 'ERR_INVALID_ARGUMENT',
        field,
        message: expect.stringMatching(message),
      }),
    );
    expect(enqueued.dispatch.length - before).toBeLessThanOrEqual(1);
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

  it('options of handles that do not exist', () => {
    const group = new EpGroup(fakeCore(comm, config).core, claimNothing());
    for (const [message, options] of [
      ['aligment is unknown in the options of a handle; did you mean alignment?', { aligment: 8 }],
      ['hnadle is unknown in memory; did you mean handle?', { memory: { hnadle: () => comm.allocate(1) } }],
    ] as const)
      expect(() => group.createHandle({ layout: 'packed', ...options } as never)).toThrow(message);
    expect(() => group.layer({ layout: 'flat', experts: {} as never })).toThrow(/experts.enqueue must be/);
    expect(group.memory().handles).toBe(0);
  });

  it('an output below the fixed budget', () => {
    const handle = routed('flat', { receiveBudget: 21 });
    expect(() =>
      handle.dispatch(tokens(), { stream, weights: weights(), out: { tokens: make('bf16', 20, 128) } }),
    ).toThrow(/at least receiveBudget = 21 rows, got 20/);
    expect(handle.outputShapes('dispatch').tokens.shape).toEqual([21, 128]);
  });
});
