// SPDX-License-Identifier: Apache-2.0
// What a handle passes on for each layout and pass, and what it refuses, by layout, mode, pass and field.

import { type Communicator, type DType, localWorld, type Stream, type World } from '@nccl-ext/core';
import { type EpLayout, epLayouts } from '@nccl-ext/core/contract';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { EpConfig } from '../config/ep-config.js';
import { EpGroup } from '../group/ep-group.js';
import { claimNothing, type Enqueued, fakeCore } from '../group/fake-core.test-util.js';
import { allocateTensor, type EpTensor, tensor } from '../tensor/tensor.js';
import type { EpHandle } from './ep-handle.js';

const config: EpConfig = { experts: 4, topK: 2, hidden: 128, dtype: 'bf16', maxTokensPerRank: 8 };
const batch = 3;

let world: World;
let comm: Communicator;
let stream: Stream;
let enqueued: Enqueued;
beforeAll(async () => {
  world = await localWorld({ ranks: 2, backend: 'embedded', workers: 1 });
  comm = world.ranks[0]!;
  stream = comm.createStream();
});
afterAll(() => world.dispose());

/** Any of the calls, without the types that would refuse most of what is tested here. */
interface Loose {
  route(topkIdx: unknown, options: unknown): void;
  dispatch(tokens: unknown, options: unknown): void;
  combine(rows: unknown, options: unknown): void;
  complete(options: unknown): void;
}

function handleOf(layout: EpLayout, change: Partial<EpConfig> = {}): EpHandle & Loose {
  const fake = fakeCore(comm, { ...config, ...change });
  enqueued = fake.enqueued;
  return new EpGroup(fake.core, claimNothing()).createHandle({ layout }) as unknown as EpHandle & Loose;
}

const make = <D extends DType>(dtype: D, ...shape: number[]): EpTensor<D> =>
  allocateTensor(comm, dtype, shape);
const ids = (): EpTensor => make('i32', batch, 2);
const tokens = (): EpTensor => make('bf16', batch, 128);
const weights = (): EpTensor => make('f32', batch, 2);

/** What a forward dispatch of each layout must give. */
const outputs: Record<EpLayout, () => Record<string, EpTensor>> = {
  'expert-major': () => ({ tokens: make('bf16', 2, 16, 128), expertCounts: make('i32', 2) }),
  'rank-major': () => ({
    tokens: make('bf16', 2, 8, 128),
    topkWeights: make('f32', 2, 8, 2),
    topkIdx: make('i64', 2, 8, 2),
  }),
  flat: () => ({ tokens: make('bf16', 20, 128) }),
  packed: () => ({ tokens: make('bf16', 20, 128) }),
};

function routed(layout: EpLayout, change: Partial<EpConfig> = {}): EpHandle & Loose {
  const handle = handleOf(layout, change);
  handle.route(ids(), { stream });
  return handle;
}

function dispatched(layout: EpLayout): EpHandle & Loose {
  const handle = routed(layout);
  handle.dispatch(tokens(), { stream, weights: weights(), out: outputs[layout]() });
  return handle;
}

describe.each(epLayouts)('%s', (layout) => {
  it('passes tensors on as buffers and offsets', () => {
    const handle = handleOf(layout);
    handle.route(tensor(comm.allocate(1024), 'i64', [batch, 2], 16), { stream });
    expect(enqueued.route[0]).toMatchObject({
      tokens: batch,
      topkIdx: { byteOffset: 16, entryBytes: 8 },
      topkWeights: { buffer: 0 },
    });
    const out = outputs[layout]();
    handle.dispatch(tokens(), { stream, weights: weights(), out });
    expect(enqueued.dispatch[0]).toMatchObject({
      pass: 'forward',
      quantization: 'none',
      rowBytes: 256,
      outRowBytes: 256,
      scaleBytes: 0,
      outRows: out.tokens!.shape.slice(0, -1).reduce((a, b) => a * b),
      outTokens: { buffer: out.tokens!.buffer.handle },
      idsLocal: true,
      sendOnly: false,
      renormalize: false,
    });
    handle.combine(out.tokens!, { stream, out: { tokens: tokens() } });
    expect(enqueued.combine[0]).toMatchObject({
      pass: 'forward',
      rows: enqueued.dispatch[0]!.outRows,
      outWeights: { buffer: 0 },
    });
  });

  it('takes a rank without tokens, with tensors absent or empty', () => {
    for (const absent of [true, false]) {
      const handle = handleOf(layout);
      handle.route(absent ? undefined : make('i32', 0, 2), { stream });
      handle.dispatch(absent ? undefined : make('bf16', 0, 128), {
        stream,
        weights: absent ? undefined : make('f32', 0, 2),
        out: outputs[layout](),
      });
      handle.combine(outputs[layout]().tokens!, {
        stream,
        out: absent ? {} : { tokens: make('bf16', 0, 128) },
      });
      expect(enqueued.dispatch[0]).toMatchObject({ rowBytes: 256 });
      expect(enqueued.combine.length).toBe(1);
    }
  });

  it('says the shapes to allocate', () => {
    const handle = routed(layout);
    const shapes: Record<string, { dtype: DType; shape: readonly number[] }> = handle.outputShapes(
      'dispatch',
      {
        rows: 20,
        quantization: 'fp8',
      },
    );
    const out = Object.fromEntries(
      Object.entries(shapes).map(([name, { dtype, shape }]) => [name, make(dtype, ...shape)]),
    );
    expect(out.tokens!.dtype).toBe('f8e4m3');
    expect(out.scales!.shape.at(-1)).toBe(1);
    handle.dispatch(tokens(), { stream, weights: weights(), quantization: 'fp8', out });
    expect(enqueued.dispatch[0]).toMatchObject({ rowBytes: 256, outRowBytes: 128, scaleBytes: 4 });
    expect(handle.outputShapes('combine')).toEqual({ tokens: { dtype: 'bf16', shape: [batch, 128] } });
  });

  it('refuses what is out of order', () => {
    const handle = handleOf(layout);
    const early = (call: () => void) =>
      expect(call).toThrow(expect.objectContaining({ code: 'ERR_INVALID_STATE' }));
    early(() => handle.dispatch(tokens(), { stream, weights: weights(), out: outputs[layout]() }));
    early(() => handle.combine(tokens(), { stream, out: { tokens: tokens() } }));
    early(() => handle.complete({ stream }));
    expect(enqueued).toMatchObject({ route: [], dispatch: [], combine: [], completes: 0 });
  });

  it('refuses disposed handles and foreign streams', async () => {
    const handle = routed(layout);
    expect(() => handle.route(ids(), { stream: world.ranks[1]!.createStream() })).toThrow(
      expect.objectContaining({ code: 'ERR_FOREIGN_OBJECT' }),
    );
    await handle.dispose();
    expect(enqueued.live).toBe(1);
    expect(() => handle.route(ids(), { stream })).toThrow(expect.objectContaining({ code: 'ERR_DISPOSED' }));
  });
});

describe('backward', () => {
  it.each(['flat', 'packed'] as const)('scatters and gathers gradients on %s', (layout) => {
    const handle = dispatched(layout);
    handle.dispatch(tokens(), { stream, pass: 'backward', out: { tokens: make('bf16', 20, 128) } });
    expect(enqueued.dispatch[1]).toMatchObject({ pass: 'backward', topkWeights: { buffer: 0 }, outRows: 20 });
    const gradients = layout === 'flat' ? make('f32', 20, 2) : make('f32', 20);
    const out = { tokens: tokens(), topkWeights: weights() };
    handle.combine(make('bf16', 20, 128), { stream, pass: 'backward', weights: gradients, out });
    expect(enqueued.combine[0]).toMatchObject({
      pass: 'backward',
      topkWeights: { buffer: gradients.buffer.handle },
      outWeights: { buffer: out.topkWeights.buffer.handle },
    });
  });
});

describe('send only', () => {
  it('is ended by complete, in low latency', () => {
    const handle = routed('expert-major');
    handle.dispatch(tokens(), { stream, weights: weights(), sendOnly: true, out: outputs['expert-major']() });
    expect(enqueued.dispatch[0]!.sendOnly).toBe(true);
    expect(() =>
      handle.combine(outputs['expert-major']().tokens!, { stream, out: { tokens: tokens() } }),
    ).toThrow(expect.objectContaining({ code: 'ERR_INVALID_STATE' }));
    handle.complete({ stream });
    expect(enqueued.completes).toBe(1);
  });
});

/** What is wrong, the call, the field, and what the message says. */
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
    for (const [code, call] of cases) expect(call).toThrow(expect.objectContaining({ code }));
  });

  it('an output below the fixed budget', () => {
    const handle = routed('flat', { receiveBudget: 21 });
    expect(() =>
      handle.dispatch(tokens(), { stream, weights: weights(), out: { tokens: make('bf16', 20, 128) } }),
    ).toThrow(/at least receiveBudget = 21 rows, got 20/);
    expect(handle.outputShapes('dispatch').tokens.shape).toEqual([21, 128]);
  });
});

describe('forwarded rows', () => {
  it('may be packed f4 with scales of any dtype', () => {
    const handle = routed('flat');
    const forward = { dtype: 'f4e2m1x2', scales: { dtype: 'f8e4m3', perRow: 8 } } as const;
    const shapes = handle.outputShapes('dispatch', { rows: 20, quantization: 'forward', forward });
    expect(shapes.tokens).toEqual({ dtype: 'f4e2m1x2', shape: [20, 64] });
    expect(shapes.scales).toEqual({ dtype: 'f8e4m3', shape: [20, 8] });
    handle.dispatch(make('f4e2m1x2', 3, 64), {
      stream,
      weights: weights(),
      scales: make('f8e4m3', 3, 8),
      quantization: 'forward',
      out: { tokens: make('f4e2m1x2', 20, 64), scales: make('f8e4m3', 20, 8) },
    });
    expect(enqueued.dispatch[0]).toMatchObject({ rowBytes: 64, outRowBytes: 64, scaleBytes: 8 });
  });
});

describe('handles of a group', () => {
  it('have an alignment in packed only, and a layout that the reduction knows', () => {
    const group = (change: Partial<EpConfig> = {}) =>
      new EpGroup(fakeCore(comm, { ...config, ...change }).core, claimNothing());
    expect(group().createHandle({ layout: 'packed', alignment: 128 }).alignment).toBe(128);
    const wrong = [
      ['alignment', () => group().createHandle({ layout: 'packed', alignment: 12 })],
      ['alignment', () => group().createHandle({ layout: 'flat', alignment: 8 as never })],
      ['layout', () => group().createHandle({ layout: 'ragged' as never })],
      ['layout', () => group({ reduction: 'token' }).createHandle({ layout: 'flat' })],
      ['layout', () => group({ reduction: 'token' }).createHandle({ layout: 'rank-major' })],
      ['options', () => group().createHandle(undefined as never)],
    ] as const;
    for (const [field, call] of wrong)
      expect(call).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field }));
  });

  it('take memory of the caller, and give it back', async () => {
    const buffer = comm.allocate(1 << 16);
    const freed: string[] = [];
    const memory = {
      allocate: () => ({ buffer, byteOffset: 256 }),
      free: (_: unknown, purpose: string) => {
        freed.push(purpose);
      },
    };
    const group = new EpGroup(fakeCore(comm, { ...config, memory }).core, claimNothing());
    await group.createHandle({ layout: 'flat' }).dispose();
    expect(freed).toEqual(['handle']);
    const small = comm.allocate(64);
    const wrong = [
      ['ERR_OUT_OF_BOUNDS', { handle: () => small }],
      ['ERR_INVALID_ARGUMENT', { handle: () => ({ buffer, byteOffset: 8 }) }],
      ['ERR_INVALID_ARGUMENT', { handle: () => 5 as never }],
      ['ERR_FOREIGN_OBJECT', { handle: () => world.ranks[1]!.allocate(1 << 16) }],
    ] as const;
    for (const [code, source] of wrong)
      expect(() => group.createHandle({ layout: 'flat', memory: source })).toThrow(
        expect.objectContaining({ code }),
      );
    expect(group.memory().handles).toBe(0);
  });

  it('know their members', async () => {
    const masked = new EpGroup(fakeCore(comm, { ...config, mask: true }).core, claimNothing());
    expect(masked.membership).toEqual({ epoch: 0, active: [0, 1] });
    expect(masked.observed()).toEqual([1]);
    expect(await masked.changeMembership([0])).toBe(1);
    for (const active of [[1], [0, 0], [0, 2], 'all'])
      await expect(masked.changeMembership(active as never)).rejects.toMatchObject({
        code: 'ERR_INVALID_ARGUMENT',
      });
    const fixed = new EpGroup(fakeCore(comm, config).core, claimNothing());
    await expect(fixed.changeMembership([0])).rejects.toMatchObject({ code: 'ERR_INVALID_STATE' });
  });
});
