// SPDX-License-Identifier: Apache-2.0
// What the types of the public API promise, and what they refuse: fields that a layout does not have do not compile.

import type { Communicator, Stream } from '@nccl-ext/core';
import { describe, expectTypeOf, it } from 'vitest';
import {
  createEpGroup,
  type EpGroup,
  type EpHandle,
  type EpTensor,
  hostExperts,
  type MoeLayer,
  type TensorShape,
  tensor,
} from './index.js';

const comm = {} as Communicator;
const group = {} as EpGroup;
const stream = {} as Stream;
const ids = {} as EpTensor<'i32'>;
const rows = {} as EpTensor<'bf16'>;
const weights = {} as EpTensor<'f32'>;
const expertMajor = {} as EpHandle<'expert-major'>;
const rankMajor = {} as EpHandle<'rank-major'>;
const flat = {} as EpHandle<'flat'>;
const packed = {} as EpHandle<'packed'>;

describe('groups and handles', () => {
  it('are asynchronous and synchronous to make', () => {
    const config = { experts: 8, topK: 2, hidden: 64, dtype: 'bf16', maxTokensPerRank: 4 } as const;
    expectTypeOf(createEpGroup(comm, config)).resolves.toEqualTypeOf<EpGroup>();
    expectTypeOf(group.createHandle({ layout: 'flat' })).toEqualTypeOf<EpHandle<'flat'>>();
    group.createHandle({ layout: 'packed', alignment: 128 });
    // @ts-expect-error only packed handles have zones to align
    group.createHandle({ layout: 'flat', alignment: 128 });
    // @ts-expect-error there is no such layout
    group.createHandle({ layout: 'ragged' });
    // @ts-expect-error rows are f32, f16 or bf16
    void createEpGroup(comm, { ...config, dtype: 'f8e4m3' });
  });

  it('make layers of their layout', () => {
    const experts = hostExperts(({ rows }) => rows);
    expectTypeOf(group.layer({ layout: 'packed', experts })).toEqualTypeOf<MoeLayer<'packed'>>();
  });

  it('are handles of any layout too', () => {
    const any: EpHandle = flat as EpHandle;
    any.complete({ stream });
  });
});

describe('route', () => {
  it('gives counts in high throughput', () => {
    flat.route(ids, { stream, counts: { total: ids } });
    packed.route(ids, { stream, counts: { expertOffsets: ids } });
    // @ts-expect-error only zones have offsets
    flat.route(ids, { stream, counts: { expertOffsets: ids } });
    // @ts-expect-error low latency counts in dispatch
    expertMajor.route(ids, { stream, counts: { total: ids } });
    // @ts-expect-error ids are integers
    flat.route(weights, { stream });
  });
});

describe('dispatch', () => {
  it('needs weights and the outputs of the layout', () => {
    expertMajor.dispatch(rows, { stream, weights, sendOnly: true, out: { tokens: rows, expertCounts: ids } });
    rankMajor.dispatch(rows, {
      stream,
      weights,
      ids: 'global',
      out: { tokens: rows, topkWeights: weights, topkIdx: ids },
    });
    flat.dispatch(rows, { stream, weights, ids: 'global', out: { tokens: rows, topkIdx: ids } });
    packed.dispatch(rows, { stream, weights, out: { tokens: rows, topkWeights: weights } });
    // @ts-expect-error weights are missing
    flat.dispatch(rows, { stream, out: { tokens: rows } });
    // @ts-expect-error weights are f32
    flat.dispatch(rows, { stream, weights: rows, out: { tokens: rows } });
    // @ts-expect-error expert-major counts per expert
    expertMajor.dispatch(rows, { stream, weights, out: { tokens: rows } });
    // @ts-expect-error packed rows belong to one expert each
    packed.dispatch(rows, { stream, weights, out: { tokens: rows, topkIdx: ids } });
    // @ts-expect-error there are no ids to be global
    packed.dispatch(rows, { stream, weights, ids: 'global', out: { tokens: rows } });
    // @ts-expect-error high throughput does not split sends
    flat.dispatch(rows, { stream, weights, sendOnly: true, out: { tokens: rows } });
  });

  it('goes backward in high throughput, without weights', () => {
    flat.dispatch(rows, { stream, pass: 'backward', out: { tokens: rows } });
    // @ts-expect-error the routing is there already
    packed.dispatch(rows, { stream, pass: 'backward', weights, out: { tokens: rows } });
    // @ts-expect-error low latency has no backward pass
    expertMajor.dispatch(rows, { stream, pass: 'backward', out: { tokens: rows, expertCounts: ids } });
  });
});

describe('combine', () => {
  it('takes weights backward only', () => {
    expertMajor.combine(rows, { stream, out: { tokens: rows } });
    flat.combine(rows, { stream, pass: 'backward', weights, out: { tokens: rows, topkWeights: weights } });
    // @ts-expect-error expert-major weights were dispatched
    expertMajor.combine(rows, { stream, weights, out: { tokens: rows } });
    // @ts-expect-error forward rows are weighted
    flat.combine(rows, { stream, weights, out: { tokens: rows } });
    // @ts-expect-error gradients of weights are missing
    flat.combine(rows, { stream, pass: 'backward', weights, out: { tokens: rows } });
    const backward = {
      stream,
      pass: 'backward',
      weights,
      out: { tokens: rows, topkWeights: weights },
    } as const;
    packed.combine(rows, backward);
    // @ts-expect-error low latency has no backward pass
    rankMajor.combine(rows, backward);
    // @ts-expect-error payloads are fp8 or as they are
    flat.combine(rows, { stream, quantization: 'mxfp8', out: { tokens: rows } });
  });

  it('completes in low latency only', () => {
    expertMajor.complete({ stream });
    // @ts-expect-error nothing is sent apart
    flat.complete({ stream });
  });
});

describe('tensors and shapes', () => {
  it('carry their dtype', () => {
    expectTypeOf(tensor(rows.buffer, 'f16', [1])).toEqualTypeOf<EpTensor<'f16'>>();
    expectTypeOf(expertMajor.outputShapes('dispatch').expertCounts).toEqualTypeOf<TensorShape>();
    // @ts-expect-error packed has no ids
    void packed.outputShapes('dispatch').topkIdx;
  });
});
