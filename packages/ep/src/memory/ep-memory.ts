// SPDX-License-Identifier: Apache-2.0
// What a group will take, per purpose, before there is one.

import { type DType, dtypeBytes } from '@nccl-ext/core';
import { type EpLayout, epLayouts } from '@nccl-ext/core/contract';
import type { EpConfig } from '../config/ep-config.js';
import type { EpSettings } from '../config/ep-settings.js';
import { parseConfig } from '../config/parse-config.js';
import { fieldMatrix } from '../fields/field-matrix.js';
import { shapesOf } from '../fields/shapes-of.js';
import { layoutOfSettings } from './layout-of.js';
import { requireAlignment } from './require-alignment.js';
import { worstCaseRows } from './worst-case-rows.js';

/** Bytes by purpose, on the rank with the most local experts. */
export interface EpMemory {
  /** Once per group. */
  readonly group: { readonly contexts: number; readonly calls: number; readonly bytes: number };
  /** Per handle: snapshot of ids, weights, slots and counts. */
  readonly handle: {
    readonly experts: number;
    readonly weights: number;
    readonly slots: number;
    readonly counts: number;
    readonly bytes: number;
  };
  /** Buffers of the caller for one forward pass of a layout, without quantization. */
  readonly layouts: { readonly [L in EpLayout]: EpLayoutMemory };
}

export interface EpLayoutMemory {
  /** Rows of the output buffer: the fixed shape, the budget, or the worst case. */
  readonly rows: number;
  /** Rows of the worst case, packed without alignment. */
  readonly worstCaseRows: number;
  /** Outputs of dispatch by field, such as `out.tokens`. */
  readonly dispatch: Readonly<Record<string, number>>;
  /** Rows that experts write and combine reads. */
  readonly combine: number;
  readonly bytes: number;
}

/**
 * Bytes that a group of `ranks` ranks takes, per purpose. `alignment` is that of packed handles.
 *
 * @throws ERR_INVALID_ARGUMENT as `createEpGroup`.
 * @example
 * ```ts
 * const { handle } = epMemory({ experts: 8, topK: 2, hidden: 64, dtype: 'bf16', maxTokensPerRank: 16 }, 4);
 * handle.slots; // 512
 * ```
 */
export function epMemory(config: EpConfig, ranks: number, alignment = 1): EpMemory {
  const settings = parseConfig(config, ranks);
  requireAlignment('packed', alignment);
  const { group, handle } = layoutOfSettings(settings);
  return {
    group: { contexts: group.contexts.bytes, calls: group.calls.bytes, bytes: group.bytes },
    handle: {
      experts: handle.experts.bytes,
      weights: handle.weights.bytes,
      slots: handle.slots.bytes,
      counts: handle.counts.bytes,
      bytes: handle.bytes,
    },
    layouts: Object.fromEntries(
      epLayouts.map((layout) => [layout, layoutMemory(settings, layout, alignment)]),
    ) as unknown as EpMemory['layouts'],
  };
}

function layoutMemory(settings: EpSettings, layout: EpLayout, alignment: number): EpLayoutMemory {
  const { receiveBudget, maxTokensPerRank, map } = settings;
  const worst = worstCaseRows(settings, layout, alignment);
  const highThroughput = layout === 'flat' || layout === 'packed';
  const rows = highThroughput && receiveBudget > 0 ? receiveBudget : worst;
  const rank = map.placement.findIndex((local) => local.length === map.mostLocal);
  const shapes = shapesOf(settings, fieldMatrix[layout].dispatch.forward!, {
    rank,
    tokens: maxTokensPerRank,
    rows,
  });
  const outputs = Object.entries(shapes).filter(([field]) => field.startsWith('out.'));
  const dispatch = Object.fromEntries(outputs.map(([field, shape]) => [field, bytesOf(shape)]));
  const combine = dispatch['out.tokens']!;
  const bytes = Object.values(dispatch).reduce((sum, field) => sum + field, combine);
  return { rows, worstCaseRows: worst, dispatch, combine, bytes };
}

function bytesOf({ dtype, shape }: { readonly dtype: DType; readonly shape: readonly number[] }): number {
  return shape.reduce((product, extent) => product * extent, dtypeBytes(dtype));
}
