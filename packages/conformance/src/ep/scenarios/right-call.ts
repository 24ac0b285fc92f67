// SPDX-License-Identifier: Apache-2.0
// Calls that are right, apart from what a caller changes.

import type { Communicator, DType, Stream } from '@nccl-ext/core';
import type { EpGroup, EpTensor } from '@nccl-ext/ep';
import type { HandleSpec } from '../cases/ep-case.js';
import { loose } from '../run/enqueue-step.js';

/** Three tokens of 128 bf16, top-2 of 4 experts, on the only rank; a budget of 8 rows. */
export const config = {
  experts: 4,
  topK: 2,
  hidden: 128,
  dtype: 'bf16',
  maxTokensPerRank: 4,
  receiveBudget: 8,
} as const;

/** A group of one rank, and what calls need. */
export interface Place {
  readonly group: EpGroup;
  readonly stream: Stream;
  make(dtype: DType, ...shape: readonly number[]): EpTensor;
  readonly comm: Communicator;
}

/** A handle that has routed its tokens nowhere. */
export function route(
  place: Place,
  layout: HandleSpec['layout'],
  { tokens = 3, ids = 'i32' }: { readonly tokens?: number; readonly ids?: DType } = {},
): ReturnType<typeof loose> {
  const handle = loose(place.group.createHandle({ layout }));
  const topkIdx = place.make(ids, tokens, 2);
  place.stream.fill(topkIdx.buffer, 0xff);
  handle.route(topkIdx, { stream: place.stream });
  return handle;
}

/** A forward dispatch that is right, apart from what is changed. */
export function dispatch(
  place: Place,
  layout: HandleSpec['layout'],
  change: Readonly<Record<string, unknown>> = {},
  out: Readonly<Record<string, unknown>> = {},
  routed = true,
): ReturnType<typeof loose> {
  const { make, stream } = place;
  const handle = routed ? route(place, layout) : loose(place.group.createHandle({ layout }));
  const { tokens = make('bf16', 3, 128), ...options } = change;
  const outputs = {
    'expert-major': () => ({ tokens: make('bf16', 4, 4, 128), expertCounts: make('i32', 4) }),
    'rank-major': () => ({
      tokens: make('bf16', 1, 4, 128),
      topkWeights: make('f32', 1, 4, 2),
      topkIdx: make('i32', 1, 4, 2),
    }),
    flat: () => ({ tokens: make('bf16', 8, 128) }),
    packed: () => ({ tokens: make('bf16', 8, 128) }),
  };
  const weights = make('f32', 3, 2);
  handle.dispatch(tokens as EpTensor, { stream, weights, ...options, out: { ...outputs[layout](), ...out } });
  return handle;
}
