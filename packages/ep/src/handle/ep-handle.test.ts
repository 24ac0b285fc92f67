// SPDX-License-Identifier: Apache-2.0
// What a handle passes on for each layout and pass.

import type { DType } from '@nccl-ext/core';
import { epLayouts } from '@nccl-ext/core/contract';
import { describe, expect, it } from 'vitest';
import { tensor } from '../tensor/tensor.js';
import {
  batch,
  comm,
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

  it.each<[string, string, Record<string, unknown>]>([
    ['operation', 'route', {}],
    ['row', 'dispatch', { row: 20 }],
    ['rows', 'dispatch', { rows: -1 }],
    ['index', 'dispatch', { index: 'i16' }],
    ['quantization', 'dispatch', { quantization: 'fp4' }],
    ['forward.dtype', 'dispatch', { quantization: 'forward', forward: { dtype: 'i32' } }],
  ])('says no shapes for a wrong %s', (field, operation, options) => {
    expect(() => routed(layout).outputShapes(operation as 'dispatch', options)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field }),
    );
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
