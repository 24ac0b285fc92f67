// SPDX-License-Identifier: Apache-2.0
// What one step of expert parallelism moves, receives, holds and takes at least, from its routing alone.

import { dtypeBytes, type LinkClass, linkClasses } from '@nccl-ext/core';
import {
  type EpMemory,
  type EpQuantization,
  epMemory,
  expertMapOf,
  type RoutingBalance,
  routingBalance,
} from '@nccl-ext/ep';
import { pairRows } from '../ep/pair-rows.js';
import type { EpPlanInput } from './ep-input.js';
import { type PassBound, passBound } from './pass-bound.js';

export interface EpPlanFacts {
  readonly input: EpPlanInput;
  readonly balance: RoutingBalance;
  /** Rows of the layout that each rank receives, padding included; those of a step without a budget. */
  readonly received: Float64Array;
  /** Bytes of a row on its way to experts, scales included, and back. */
  readonly rowBytes: { readonly dispatch: number; readonly combine: number };
  /** A token travels once per rank that it reaches; `self` is what stays. */
  readonly bytesByLink: { readonly dispatch: LinkBytes; readonly combine: LinkBytes };
  readonly memory: EpMemory;
  readonly bounds: { readonly dispatch: PassBound; readonly combine: PassBound };
}

export type LinkBytes = Readonly<Record<LinkClass, number>>;

/** @throws ERR_INVALID_ARGUMENT for a configuration or a routing that cannot be. */
export function planEp(input: EpPlanInput): EpPlanFacts {
  const { config, ranks, layout, alignment, quantization, topology, topkIdx } = input;
  const { experts, topK, hidden, dtype } = config;
  // Checks the configuration before anything is counted.
  const memory = epMemory(config, ranks, alignment);
  const map = expertMapOf(experts, ranks);
  const balance = routingBalance({ topkIdx, topK, experts });
  const padded = (rows: number): number => Math.ceil(rows / alignment) * alignment;
  const received = Float64Array.from({ length: ranks }, (_, rank) => {
    if (layout === 'flat' || layout === 'rank-major') return balance.rows.load[rank]!;
    if (layout === 'expert-major') return balance.rank.load[rank]!;
    const zones = balance.physical.load.subarray(map.firstPhysical[rank], map.firstPhysical[rank + 1]);
    return zones.reduce((sum, rows) => sum + padded(rows), 0);
  });
  const { rows } = pairRows(map, topK, topkIdx);
  const rowBytes = { dispatch: wireBytes(hidden, dtype, quantization), combine: hidden * dtypeBytes(dtype) };
  const linkBytes = (perRow: number): LinkBytes => {
    const bytes = Object.fromEntries(linkClasses.map((name) => [name, 0])) as Record<LinkClass, number>;
    for (let source = 0; source < ranks; source++)
      for (let to = 0; to < ranks; to++)
        bytes[topology.linkBetween(source, to)] += rows[source * ranks + to]! * perRow;
    return bytes;
  };
  const bound = (perRow: number, back: boolean): PassBound =>
    passBound({ rows, received, perRow, ranks, topology, back });
  return {
    input,
    balance,
    received,
    rowBytes,
    bytesByLink: { dispatch: linkBytes(rowBytes.dispatch), combine: linkBytes(rowBytes.combine) },
    memory,
    bounds: { dispatch: bound(rowBytes.dispatch, false), combine: bound(rowBytes.combine, true) },
  };
}

/** Bytes of a dispatched row with its scales: an f32 per 128 channels, or a byte per 32. */
export function wireBytes(
  hidden: number,
  dtype: 'f32' | 'f16' | 'bf16',
  quantization: EpQuantization,
): number {
  switch (quantization) {
    case 'fp8':
    case 'fp8-pow2':
      return hidden + 4 * Math.ceil(hidden / 128);
    case 'mxfp8':
      return hidden + Math.ceil(hidden / 32);
    default:
      return hidden * dtypeBytes(dtype);
  }
}
