// SPDX-License-Identifier: Apache-2.0
// Handles over a backend that only remembers, and the tensors that their calls take.

import { type Communicator, type DType, localWorld, type Stream, type World } from '@nccl-ext/core';
import type { EpLayout } from '@nccl-ext/core/contract';
import { afterAll, beforeAll } from 'vitest';
import type { EpConfig } from '../config/ep-config.js';
import { EpGroup } from '../group/ep-group.js';
import { claimNothing, type Enqueued, fakeCore } from '../group/fake-core.test-util.js';
import { allocateTensor, type EpTensor } from '../tensor/tensor.js';
import type { EpHandle } from './ep-handle.js';

export const config: EpConfig = { experts: 4, topK: 2, hidden: 128, dtype: 'bf16', maxTokensPerRank: 8 };
export const batch = 3;

export let world: World;
export let comm: Communicator;
export let stream: Stream;
/** What the last handle that was made enqueued. */
export let enqueued: Enqueued;

/** A world of two ranks for the tests of a file. */
export function useWorld(): void {
  beforeAll(async () => {
    world = await localWorld({ ranks: 2, backend: 'embedded', workers: 1 });
    comm = world.ranks[0]!;
    stream = comm.createStream();
  });
  afterAll(() => world.dispose());
}

/** Any of the calls, without the types that would refuse most of what is tested here. */
export interface Loose {
  route(topkIdx: unknown, options: unknown): void;
  dispatch(tokens: unknown, options: unknown): void;
  combine(rows: unknown, options: unknown): void;
  complete(options: unknown): void;
}

export function handleOf(layout: EpLayout, change: Partial<EpConfig> = {}): EpHandle & Loose {
  const fake = fakeCore(comm, { ...config, ...change });
  enqueued = fake.enqueued;
  return new EpGroup(fake.core, claimNothing()).createHandle({ layout }) as unknown as EpHandle & Loose;
}

export const make = <D extends DType>(dtype: D, ...shape: number[]): EpTensor<D> =>
  allocateTensor(comm, dtype, shape);
export const ids = (): EpTensor => make('i32', batch, 2);
export const tokens = (): EpTensor => make('bf16', batch, 128);
export const weights = (): EpTensor => make('f32', batch, 2);

/** What a forward dispatch of each layout must give. */
export const outputs: Record<EpLayout, () => Record<string, EpTensor>> = {
  'expert-major': () => ({ tokens: make('bf16', 2, 16, 128), expertCounts: make('i32', 2) }),
  'rank-major': () => ({
    tokens: make('bf16', 2, 8, 128),
    topkWeights: make('f32', 2, 8, 2),
    topkIdx: make('i64', 2, 8, 2),
  }),
  flat: () => ({ tokens: make('bf16', 20, 128) }),
  packed: () => ({ tokens: make('bf16', 20, 128) }),
};

export function routed(layout: EpLayout, change: Partial<EpConfig> = {}): EpHandle & Loose {
  const handle = handleOf(layout, change);
  handle.route(ids(), { stream });
  return handle;
}

export function dispatched(layout: EpLayout): EpHandle & Loose {
  const handle = routed(layout);
  handle.dispatch(tokens(), { stream, weights: weights(), out: outputs[layout]() });
  return handle;
}
