// SPDX-License-Identifier: Apache-2.0
// What each operation takes and gives on each layout, as types: a field that a layout does not have does not compile.

import type { Stream } from '@nccl-ext/core';
import type { EpLayout, EpQuantization } from '@nccl-ext/core/contract';
import type { HighThroughputLayout } from '../fields/modes.js';
import type { EpTensor } from '../tensor/tensor.js';

/** Counts and ids: 4 or 8 bytes per entry. */
export type IndexTensor = EpTensor<'i32' | 'i64'> | EpTensor<'i32'> | EpTensor<'i64'>;
export type WeightTensor = EpTensor<'f32'>;

/** Counts that a high-throughput route leaves on the device; each is optional. */
export interface RouteCounts {
  /** [L]: rows per local expert; packed: padded. */
  readonly expertCounts?: IndexTensor | undefined;
  /** [R]: rows per source rank. */
  readonly sourceCounts?: IndexTensor | undefined;
  /** [1]: received rows N, padding included. */
  readonly total?: IndexTensor | undefined;
  /** [1]: rows that would have been received without a budget. */
  readonly demand?: IndexTensor | undefined;
}

/** With where each zone starts. */
export interface PackedRouteCounts extends RouteCounts {
  /** [L]: first row of each local expert's zone. */
  readonly expertOffsets?: IndexTensor | undefined;
}

interface OnStream {
  readonly stream: Stream;
}

interface HighThroughputRoute<C> extends OnStream {
  /** f32 [B, K]: what `drop-by-weight` looks at, and needed with it only. */
  readonly weights?: WeightTensor | undefined;
  readonly counts?: C | undefined;
}

/** Options of `handle.route`. */
export interface RouteOptionsOf {
  'expert-major': OnStream;
  'rank-major': OnStream;
  flat: HighThroughputRoute<RouteCounts>;
  packed: HighThroughputRoute<PackedRouteCounts>;
}
export type RouteOptions<L extends EpLayout> = RouteOptionsOf[L];

interface Rows {
  /** Received rows; see the table of layouts. */
  readonly tokens: EpTensor;
  /** With a quantization that has scales. */
  readonly scales?: EpTensor | undefined;
}

/** Outputs of a forward `handle.dispatch`. */
export interface DispatchOutputsOf {
  'expert-major': Rows & {
    /** [L]: rows per local expert. */
    readonly expertCounts: IndexTensor;
    /** [R]: rows per source rank. */
    readonly sourceCounts?: IndexTensor | undefined;
  };
  'rank-major': Rows & {
    /** f32 [R, M, K]: weights of the entries that are here, then 0. */
    readonly topkWeights: WeightTensor;
    /** [R, M, K]: experts of the entries that are here, then -1. */
    readonly topkIdx: IndexTensor;
    readonly sourceCounts?: IndexTensor | undefined;
  };
  flat: Rows & {
    /** f32 [N, K]. */
    readonly topkWeights?: WeightTensor | undefined;
    /** [N, K]. */
    readonly topkIdx?: IndexTensor | undefined;
  };
  packed: Rows & {
    /** f32 [N]. */
    readonly topkWeights?: WeightTensor | undefined;
  };
}
export type DispatchOutputs<L extends EpLayout> = DispatchOutputsOf[L];

interface ForwardDispatch<L extends EpLayout> extends OnStream {
  readonly pass?: 'forward' | undefined;
  /** f32 [B, K]; undefined when B is 0. */
  readonly weights: WeightTensor | undefined;
  /** [B, S]: scales of rows that were quantised before (`forward`). */
  readonly scales?: EpTensor | undefined;
  /** Default `none`. */
  readonly quantization?: EpQuantization | undefined;
  /** Weights become w / (sum of the token's entries that are routed to members). Default false. */
  readonly renormalize?: boolean | undefined;
  /** Ids of `out.topkIdx`: positions on this rank (default), or as they were routed. */
  readonly ids?: (L extends 'rank-major' | 'flat' ? 'local' | 'global' : undefined) | undefined;
  /** Low latency: returns once published; outputs are undefined until `complete`. Default false. */
  readonly sendOnly?: (L extends HighThroughputLayout ? undefined : boolean) | undefined;
  readonly out: DispatchOutputs<L>;
}

/** The backward pass of combine: rows of gradients [B, H] to every row of their token. */
interface BackwardDispatch extends OnStream {
  readonly pass: 'backward';
  readonly out: { readonly tokens: EpTensor };
}

/** Options of `handle.dispatch`. */
export type DispatchOptions<L extends EpLayout> = L extends HighThroughputLayout
  ? ForwardDispatch<L> | BackwardDispatch
  : ForwardDispatch<L>;

interface ForwardCombine<L extends EpLayout> extends OnStream {
  readonly pass?: 'forward' | undefined;
  /** Weights were dispatched (expert-major) or are in the rows. */
  readonly weights?: undefined;
  /** `fp8`: what passes between ranks is f8e4m3 with a scale per 128 channels. Default `none`. */
  readonly quantization?: 'none' | 'fp8' | undefined;
  readonly sendOnly?: (L extends HighThroughputLayout ? undefined : boolean) | undefined;
  readonly out: {
    /** [B, H]; undefined when B is 0. */
    readonly tokens: EpTensor | undefined;
  };
}

/** The backward pass of dispatch: gradients of rows and of their weights, summed per token. */
interface BackwardCombine<L extends EpLayout> extends OnStream {
  readonly pass: 'backward';
  /** Gradients of the weights of the rows: flat f32 [N, K], packed f32 [N]. */
  readonly weights: WeightTensor;
  readonly quantization?: 'none' | undefined;
  readonly sendOnly?: (L extends HighThroughputLayout ? undefined : never) | undefined;
  readonly out: {
    /** [B, H]; undefined when B is 0. */
    readonly tokens: EpTensor | undefined;
    /** f32 [B, K]; undefined when B is 0. */
    readonly topkWeights: WeightTensor | undefined;
  };
}

/** Options of `handle.combine`. */
export type CombineOptions<L extends EpLayout> = L extends HighThroughputLayout
  ? ForwardCombine<L> | BackwardCombine<L>
  : ForwardCombine<L>;
