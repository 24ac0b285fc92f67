// SPDX-License-Identifier: Apache-2.0
// What a case of expert parallelism is, as data: a group, handles, what is routed, what is asked of each operation, how it is executed.

import type { DType } from '@nccl-ext/core';
import type { EpLayout, EpQuantization } from '@nccl-ext/core/contract';
import type { EpConfig } from '@nccl-ext/ep';
import type { CaseHeader } from '../../cases/case.js';

/** How the ids of a step are drawn. */
export interface RoutingSpec {
  /**
   * `uniform`: distinct experts at random. `hot`: most tokens choose the first experts. `one-rank`: all go to the experts of one rank, as far as
   * there are enough. `own-rank`: to those of their own. `striped`: token t to the experts from t x K on. `none`: nothing is routed.
   */
  readonly ids: 'uniform' | 'hot' | 'one-rank' | 'own-rank' | 'striped' | 'none';
  /** How many of 100 entries become -1; default 0. */
  readonly holes?: number;
  /** Tokens per rank: all have the most (default), different numbers with 0 among them, or as listed. */
  readonly tokens?: 'full' | 'ragged' | readonly number[];
  /** `edges`: weights are NaN, infinite, zero of either sign, equal. Default: between 0 and 1. */
  readonly weights?: 'usual' | 'edges';
  /** Ids of each rank as they are, [B, K]; instead of `ids`. */
  readonly listed?: readonly (readonly (readonly number[])[])[];
}

/** A handle of the group. */
export interface HandleSpec {
  readonly layout: EpLayout;
  readonly alignment?: number;
}

/** Rows that were quantised before they come. */
export interface ForwardSpec {
  readonly dtype: DType;
  readonly scales?: { readonly dtype: DType; readonly perRow: number };
}

/** Steps of route, dispatch and combine, each with other values. Every byte of every output, and around it, is compared with the oracle. */
export interface EpCase extends CaseHeader {
  readonly kind: 'ep';
  readonly config: Omit<EpConfig, 'memory'>;
  /** Steps take them in turn. */
  readonly handles: readonly HandleSpec[];
  /** Steps take them in turn. */
  readonly routings: readonly RoutingSpec[];
  /** Default: as many as there are handles or routings. */
  readonly steps?: number;
  /** Dtype of ids and counts; default i32. */
  readonly index?: 'i32' | 'i64';
  /** Whether ids of rows count within their rank (default) or are those that were routed. */
  readonly ids?: 'local' | 'global';
  readonly quantization?: EpQuantization;
  readonly forward?: ForwardSpec;
  readonly combineQuantization?: 'fp8';
  readonly renormalize?: boolean;
  /** Adds the backward pass after each combine. */
  readonly backward?: boolean;
  /** Dispatch and combine send first and complete later. */
  readonly sendOnly?: boolean;
  /** `edges`: NaNs, infinities, subnormals and ties among the elements. Default: ordinary numbers; for tokens that are only copied any bits. */
  readonly values?: 'usual' | 'edges';
  /** High throughput: output rows are as many as `counts()` says instead of the budget or the worst case. */
  readonly exactRows?: boolean;
  /** Leaves out the outputs that are optional. */
  readonly bare?: boolean;
  /** Each rank's steps are one captured graph, launched once per step. */
  readonly capture?: boolean;
  /** All steps are enqueued before the first is waited for. */
  readonly pipelined?: boolean;
  /** Streams per rank that handles take in turn; default 1. */
  readonly streams?: number;
}
