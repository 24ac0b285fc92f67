// SPDX-License-Identifier: Apache-2.0
// Whether a group can be made, asked before anything is allocated, for programs that would fall back to another configuration.

import { NcclExtError } from '@nccl-ext/core';
import { type EpLayout, epLayouts } from '@nccl-ext/core/contract';
import { requireObject } from '@nccl-ext/core/extend';
import type { EpConfig } from '../config/ep-config.js';
import { invalid, requireCount } from '../config/require-values.js';
import { type EpMemory, epMemory } from '../memory/ep-memory.js';

/** What {@link probeEp} found. */
export type EpProbe =
  | { readonly feasible: true; readonly memory: EpMemory }
  | { readonly feasible: false; readonly error: NcclExtError; readonly memory?: EpMemory };

export interface ProbeOptions {
  /** Layout whose buffers count; without one only the group and a handle do. */
  readonly layout?: EpLayout | undefined;
  /** Handles that live at a time; default 1. */
  readonly handles?: number | undefined;
  /** Bytes that there are; default: any number. */
  readonly availableBytes?: number | undefined;
}

/**
 * Checks a configuration as `createEpGroup` does, and its memory against what there is. Never throws for a configuration; the error says why not.
 *
 * @example
 * ```ts
 * const config = { experts: 8, topK: 2, hidden: 64, dtype: 'bf16' as const, maxTokensPerRank: 16 };
 * probeEp(config, 4, { layout: 'packed', availableBytes: 1000 }).feasible; // false
 * ```
 */
export function probeEp(config: EpConfig, ranks: number, options: ProbeOptions = {}): EpProbe {
  requireObject('options', options);
  const { layout, handles = 1, availableBytes = Number.POSITIVE_INFINITY } = options;
  if (layout !== undefined && !epLayouts.includes(layout))
    throw invalid('layout', `must be ${epLayouts.join(' or ')}`, layout);
  requireCount('handles', handles, 0);
  try {
    const memory = epMemory(config, ranks);
    const buffers = layout === undefined ? 0 : memory.layouts[layout].bytes;
    const needed = memory.group.bytes + handles * (memory.handle.bytes + buffers);
    if (needed <= availableBytes) return { feasible: true, memory };
    const error = new NcclExtError(
      'ERR_OUT_OF_MEMORY',
      `The group, ${handles} handles and their buffers take ${needed} bytes; there are ${availableBytes}.`,
      {
        expected: needed,
        seen: availableBytes,
        help: 'Lower maxTokensPerRank, set a receiveBudget, or choose a more compact layout.',
      },
    );
    return { feasible: false, error, memory };
  } catch (error) {
    if (NcclExtError.is(error)) return { feasible: false, error };
    throw error;
  }
}
