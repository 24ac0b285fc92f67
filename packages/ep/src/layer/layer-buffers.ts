// SPDX-License-Identifier: Apache-2.0
// What passes between the steps of a layer: received rows, what experts make of them, and counts.

import type { EpLayout } from '@nccl-ext/core/contract';
import type { TensorShape } from '../fields/shapes-of.js';
import type { IndexTensor, WeightTensor } from '../handle/call-options.js';
import type { EpHandle } from '../handle/ep-handle.js';
import { allocateTensor, type EpTensor } from '../tensor/tensor.js';

/** The tensors of one layer on one rank; those that the layout does not have are absent. */
export interface LayerBuffers {
  readonly rows: EpTensor;
  readonly results: EpTensor;
  readonly expertCounts?: IndexTensor | undefined;
  readonly expertOffsets?: IndexTensor | undefined;
  readonly sourceCounts: IndexTensor;
  readonly total?: IndexTensor | undefined;
  readonly topkIdx?: IndexTensor | undefined;
  readonly topkWeights?: WeightTensor | undefined;
}

/** Allocates them, for `rows` received rows or the budget or the worst case. */
export function allocateLayerBuffers<L extends EpLayout>(
  handle: EpHandle<L>,
  { rows }: { readonly rows?: number | undefined } = {},
): LayerBuffers {
  const comm = handle.communicator;
  const shapes: Readonly<Record<string, TensorShape>> = handle.outputShapes('dispatch', { rows });
  const make = (name: string): EpTensor | undefined => {
    const wanted = shapes[name];
    return wanted === undefined ? undefined : allocateTensor(comm, wanted.dtype, wanted.shape);
  };
  const { layout } = handle;
  const highThroughput = layout === 'flat' || layout === 'packed';
  const local = handle.localExperts.length;
  const counter = (entries: number): IndexTensor => allocateTensor(comm, 'i32', [entries]);
  const tokens = shapes.tokens!;
  return {
    rows: make('tokens')!,
    results: allocateTensor(comm, tokens.dtype, tokens.shape),
    expertCounts: layout === 'rank-major' ? undefined : counter(local),
    expertOffsets: layout === 'packed' ? counter(local) : undefined,
    sourceCounts: counter(comm.size),
    total: highThroughput ? counter(1) : undefined,
    topkIdx: make('topkIdx') as IndexTensor | undefined,
    topkWeights: make('topkWeights') as WeightTensor | undefined,
  };
}
