// SPDX-License-Identifier: Apache-2.0
// Calls that are refused before anything is enqueued: by layout, field, what was wanted and what came.

import type { DType } from '@nccl-ext/core';
import { allocateTensor, createEpGroup, type EpTensor, tensor } from '@nccl-ext/ep';
import type { CheckCase } from '../../cases/case.js';
import { type CheckContext, expectRefusal, type Refusal } from '../../run/check-context.js';
import { check } from '../../scenarios/crossed-move.js';
import { config, dispatch, type Place, route } from './right-call.js';

type Attempt = (place: Place) => unknown;

const rows: readonly (readonly [string, Refusal, Attempt])[] = [
  [
    'rows that are no multiple of 16 bytes',
    says('hidden', '16 bytes'),
    (place) => createEpGroup(place.comm, { ...config, hidden: 12 }),
  ],
  [
    'more than 32 experts per token',
    says('topK'),
    (place) => createEpGroup(place.comm, { ...config, experts: 64, topK: 33 }),
  ],
  [
    'more experts per token than there are',
    says('topK', '4'),
    (place) => createEpGroup(place.comm, { ...config, topK: 5 }),
  ],
  [
    'drops without a budget',
    says('overflow', 'eager'),
    (place) => createEpGroup(place.comm, { ...config, receiveBudget: 'eager', overflow: 'drop-by-source' }),
  ],
  [
    'an alignment that is no power of two',
    says('alignment', 'power of two'),
    ({ group }) => group.createHandle({ layout: 'packed', alignment: 12 }),
  ],
  [
    'an alignment of a layout without zones',
    says('alignment', 'flat'),
    ({ group }) => group.createHandle({ layout: 'flat', alignment: 4 as 1 }),
  ],
  ['more tokens than the most', says('topkIdx', '4', '5'), (place) => route(place, 'flat', { tokens: 5 })],
  [
    'ids that are floats',
    says('topkIdx', 'i32 or i64', 'f32'),
    (place) => route(place, 'flat', { ids: 'f32' }),
  ],
  [
    'a dispatch before a route',
    { code: 'ERR_INVALID_STATE', says: ['route'] },
    (place) => dispatch(place, 'flat', {}, {}, false),
  ],
  [
    'a combine before a dispatch',
    { code: 'ERR_INVALID_STATE', says: ['dispatch'] },
    (place) => {
      const handle = route(place, 'flat');
      handle.combine(place.make('bf16', 8, 128), {
        stream: place.stream,
        out: { tokens: place.make('bf16', 3, 128) },
      });
    },
  ],
  [
    'a complete without a send',
    { code: 'ERR_INVALID_STATE', says: ['complete'] },
    (place) => route(place, 'expert-major').complete({ stream: place.stream }),
  ],
  [
    'a route while a send is open',
    { code: 'ERR_INVALID_STATE', says: ['open'] },
    (place) => {
      const handle = dispatch(place, 'expert-major', { sendOnly: true });
      handle.route(place.make('i32', 3, 2), { stream: place.stream });
    },
  ],
  [
    'a send in high throughput',
    says('flat', 'sendOnly', 'low-latency'),
    (place) => dispatch(place, 'flat', { sendOnly: true }),
  ],
  [
    'a backward pass in low latency',
    says('expert-major', 'backward'),
    (place) => dispatch(place, 'expert-major', { pass: 'backward' }),
  ],
  [
    'weights that are missing',
    says('rank-major', 'weights', 'is missing', 'B=3', 'K=2'),
    (place) => dispatch(place, 'rank-major', { weights: undefined }),
  ],
  [
    'weights of another dtype',
    says('weights', 'f32', 'bf16'),
    (place) => dispatch(place, 'flat', { weights: place.make('bf16', 3, 2) }),
  ],
  [
    'tokens of another dtype',
    says('tokens', 'bf16', 'f16'),
    (place) => dispatch(place, 'flat', { tokens: place.make('f16', 3, 128) }),
  ],
  [
    'other tokens than were routed',
    says('tokens', 'B=3', '[2, 128]'),
    (place) => dispatch(place, 'flat', { tokens: place.make('bf16', 2, 128) }),
  ],
  [
    'an output of another shape',
    says('expert-major', 'out.tokens', 'R*M'),
    (place) => dispatch(place, 'expert-major', {}, { tokens: place.make('bf16', 4, 3, 128) }),
  ],
  [
    'an output that the layout does not have',
    says('packed', 'out.topkIdx', 'not taken'),
    (place) => dispatch(place, 'packed', {}, { topkIdx: place.make('i32', 8, 2) }),
  ],
  [
    'an output that is missing',
    says('rank-major', 'out.topkIdx', 'is missing'),
    (place) => dispatch(place, 'rank-major', {}, { topkIdx: undefined }),
  ],
  [
    'flat, an output below the budget',
    says('out.tokens', '8', '7'),
    (place) => dispatch(place, 'flat', {}, { tokens: place.make('bf16', 7, 128) }),
  ],
  [
    'a tensor that starts between multiples of 16 bytes',
    says('tokens', '16', '8'),
    (place) => dispatch(place, 'flat', { tokens: tensor(place.comm.allocate(1024), 'bf16', [3, 128], 8) }),
  ],
  [
    'a tensor that its buffer does not hold',
    { code: 'ERR_OUT_OF_BOUNDS', says: ['tokens'] },
    (place) => dispatch(place, 'flat', { tokens: tensor(place.comm.allocate(767), 'bf16', [3, 128]) }),
  ],
  [
    'input and output in the same bytes',
    { code: 'ERR_OVERLAP', says: ['out.tokens'] },
    (place) => {
      const buffer = place.comm.allocate(4096);
      dispatch(
        place,
        'flat',
        { tokens: tensor(buffer, 'bf16', [3, 128]) },
        { tokens: tensor(buffer, 'bf16', [8, 128], 512) },
      );
    },
  ],
  [
    'scales without a quantization',
    says('scales', 'not taken'),
    (place) => dispatch(place, 'flat', { scales: place.make('f32', 3, 1) }),
  ],
  [
    'fp8 without scales',
    says('out.scales', 'is missing'),
    (place) => dispatch(place, 'flat', { quantization: 'fp8' }, { tokens: place.make('f8e4m3', 8, 128) }),
  ],
  [
    'forwarded scales on one side only',
    says('out.scales', 'is missing'),
    (place) => dispatch(place, 'flat', { quantization: 'forward', scales: place.make('f32', 3, 1) }),
  ],
  [
    'forwarded scales of another dtype',
    says('out.scales', 'f32', 'u8'),
    (place) =>
      dispatch(
        place,
        'flat',
        { quantization: 'forward', scales: place.make('f32', 3, 1) },
        { scales: place.make('u8', 8, 1) },
      ),
  ],
  [
    'forwarded rows of integers',
    says('tokens', 'i32'),
    (place) => dispatch(place, 'flat', { quantization: 'forward', tokens: place.make('i32', 3, 128) }),
  ],
  [
    'an unknown quantization',
    says('quantization', 'nvfp4'),
    (place) => dispatch(place, 'flat', { quantization: 'nvfp4' }),
  ],
  [
    'a combine through mxfp8',
    says('quantization', 'fp8'),
    (place) => {
      const handle = dispatch(place, 'flat');
      handle.combine(place.make('bf16', 8, 128), {
        stream: place.stream,
        quantization: 'mxfp8',
        out: { tokens: place.make('bf16', 3, 128) },
      });
    },
  ],
  [
    'fp8 of 136 channels',
    says('fp8', '128', '136'),
    async (place) => {
      const group = await createEpGroup(place.comm, { ...config, hidden: 136 });
      dispatch({ ...place, group }, 'flat', { quantization: 'fp8' });
    },
  ],
  [
    'a reduction by token of rows that are sums',
    says('flat', 'reduction'),
    async ({ comm }) => {
      const group = await createEpGroup(comm, { ...config, reduction: 'token' });
      group.createHandle({ layout: 'flat' });
    },
  ],
  [
    'a misspelt option',
    says('renormalise', 'renormalize'),
    (place) => dispatch(place, 'flat', { renormalise: true }),
  ],
];

export const callRefusals: readonly CheckCase[] = rows.map(([what, refusal, attempt]) =>
  check('ep-refusals', what, (context) => refused(context, refusal, attempt), { ranks: 1 }),
);

function says(...words: readonly string[]): Refusal {
  return { code: 'ERR_INVALID_ARGUMENT', says: words };
}

async function refused(context: CheckContext, refusal: Refusal, attempt: Attempt): Promise<void> {
  const world = await context.fresh({ ranks: 1 });
  const comm = world.ranks[0]!;
  const group = await createEpGroup(comm, config);
  const make = (dtype: DType, ...shape: readonly number[]): EpTensor => allocateTensor(comm, dtype, shape);
  const stream = comm.createStream();
  await expectRefusal(() => attempt({ group, comm, stream, make }), refusal);
}
