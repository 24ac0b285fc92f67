// SPDX-License-Identifier: Apache-2.0
// A case's configuration with everything filled in that the oracle needs, by rules of its own.

import { type DType, dtypeBytes } from '@nccl-ext/core';
import type { EpCase, HandleSpec } from '../cases/ep-case.js';
import type { StepRules } from '../oracle/expected-step.js';
import { blockOf, type MadeQuantization } from '../oracle/quantise.js';

/** The experts of each rank in local order. */
export function placementOf({
  config: { experts },
  ranks,
}: Pick<EpCase, 'config' | 'ranks'>): readonly (readonly number[])[] {
  if (typeof experts !== 'number') return experts.placement;
  const [least, more] = [Math.floor(experts / ranks), experts % ranks];
  let next = 0;
  return Array.from({ length: ranks }, (_, rank) =>
    Array.from({ length: least + (rank < more ? 1 : 0) }, () => next++),
  );
}

export function expertCountOf({ experts }: EpCase['config']): number {
  return typeof experts === 'number' ? experts : experts.count;
}

/** Dtypes and widths of the rows of a dispatch. */
export interface RowFormat {
  readonly tokens: DType;
  readonly rows: DType;
  /** Elements of a row; packed f4 counts bytes. */
  readonly extent: number;
  readonly scale: DType | undefined;
  readonly scalesPerRow: number;
}

export function rowFormatOf({
  config: { dtype, hidden },
  quantization = 'none',
  forward,
}: EpCase): RowFormat {
  if (quantization === 'none')
    return { tokens: dtype, rows: dtype, extent: hidden, scale: undefined, scalesPerRow: 0 };
  if (quantization === 'forward') {
    const rows = forward!.dtype;
    const extent = rows === 'f4e2m1x2' ? hidden / 2 : hidden;
    const { dtype: scale, perRow: scalesPerRow } = forward!.scales ?? { dtype: undefined, perRow: 0 };
    return { tokens: rows, rows, extent, scale, scalesPerRow };
  }
  const scalesPerRow = hidden / blockOf[quantization as MadeQuantization];
  const scale = quantization === 'mxfp8' ? 'u8' : 'f32';
  return { tokens: dtype, rows: 'f8e4m3', extent: hidden, scale, scalesPerRow };
}

/** What the oracle needs to know. `members`: all ranks unless given. */
export function rulesOf(
  epCase: EpCase,
  { layout, alignment = 1 }: HandleSpec,
  members?: readonly number[],
): StepRules {
  const { config, ranks } = epCase;
  const { topK, hidden, dtype, maxTokensPerRank, receiveBudget = 'eager', overflow = 'error' } = config;
  const { scale, scalesPerRow } = rowFormatOf(epCase);
  const { experts } = config;
  return {
    placement: {
      experts: placementOf(epCase),
      localFirst: typeof experts !== 'number' && experts.replicaRule === 'local-first',
      members: members ?? Array.from({ length: ranks }, (_, rank) => rank),
    },
    topK,
    rows: {
      layout,
      ranks,
      maxTokens: maxTokensPerRank,
      alignment,
      budget: receiveBudget === 'eager' ? 0 : receiveBudget,
      overflow,
    },
    sums: {
      dtype,
      hidden,
      reduction: config.reduction ?? 'rank',
      quantization: epCase.combineQuantization ?? 'none',
    },
    quantization: epCase.quantization ?? 'none',
    renormalize: epCase.renormalize ?? false,
    idsLocal: epCase.ids !== 'global',
    debugFill: config.debugFill === undefined || config.debugFill === false ? -1 : config.debugFill,
    scaleBytes: scale === undefined ? 0 : scalesPerRow * dtypeBytes(scale),
  };
}
