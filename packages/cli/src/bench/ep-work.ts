// SPDX-License-Identifier: Apache-2.0
// What `bench ep` measures: layouts with a routing, and the bytes of their passes, counted in two ways.
//
// By the formula of nccl_ep's benchmark: unique (token, destination rank) pairs times the bytes of a row, a rank's own tokens included; the
// combine of expert-major by selections instead. Beside it what must move here: each row that is read once, and each row that is written.

import { dtypeBytes } from '@nccl-ext/core';
import type { EpLayout } from '@nccl-ext/core/contract';
import { type EpDType, expertMapOf, routingBalance } from '@nccl-ext/ep';
import { pairRows } from '../ep/pair-rows.js';
import { syntheticRouting } from '../ep/synthetic-routing.js';

export interface EpWork {
  readonly layout: EpLayout;
  readonly ranks: number;
  /** B of every rank. */
  readonly tokens: number;
  readonly topK: number;
  readonly experts: number;
  readonly hidden: number;
  readonly dtype: EpDType;
  /** Ids [B, K] by rank. */
  readonly topkIdx: readonly Int32Array[];
}

export type EpSizes = Omit<EpWork, 'topkIdx'>;

/** Uniform routing, always the same. */
export function epWork(sizes: EpSizes): EpWork {
  return { ...sizes, topkIdx: syntheticRouting({ ...sizes, kind: 'uniform', seed: 1, skew: 1 }) };
}

/** Of all ranks together. */
export interface PassBytes {
  readonly formulaBytes: number;
  readonly readBytes: number;
  readonly writtenBytes: number;
}

export function passBytes({ layout, topkIdx, topK, experts, hidden, dtype, ranks }: EpWork): {
  readonly dispatch: PassBytes;
  readonly combine: PassBytes;
} {
  const row = hidden * dtypeBytes(dtype);
  const { rows, live } = pairRows(expertMapOf(experts, ranks), topK, topkIdx);
  const sum = (list: Float64Array): number => list.reduce((total, value) => total + value, 0);
  const pairs = sum(rows);
  const entries = sum(routingBalance({ topkIdx, topK, experts }).rank.load);
  const held = layout === 'expert-major' || layout === 'packed' ? entries : pairs;
  const tokens = topkIdx.reduce((total, ids) => total + ids.length / topK, 0);
  return {
    dispatch: { formulaBytes: pairs * row, readBytes: sum(live) * row, writtenBytes: held * row },
    combine: {
      formulaBytes: (layout === 'expert-major' ? entries : pairs) * row,
      readBytes: held * row,
      writtenBytes: tokens * row,
    },
  };
}

/** The copy that causes as much traffic. */
export function copyBytesOf({ readBytes, writtenBytes }: PassBytes): number {
  return (readBytes + writtenBytes) / 2;
}
