// SPDX-License-Identifier: Apache-2.0
// The one source of every size: where things lie in the memory of groups and handles.

import {
  callBytes,
  contextBytes,
  type EpGroupLayout,
  type EpHandleLayout,
  type EpSection,
  epAlignment,
  maxEpCalls,
} from '@nccl-ext/core/contract';
import type { EpConfig } from '../config/ep-config.js';
import type { EpSettings } from '../config/ep-settings.js';
import { parseConfig } from '../config/parse-config.js';

/** Sections of the memory of a group and of each of its handles, in bytes; equal on all ranks. */
export interface EpMemoryLayout {
  readonly group: EpGroupLayout;
  readonly handle: EpHandleLayout;
}

/**
 * Where things lie in the memory of a group of `ranks` ranks and of each of its handles. Every range has `bytes` bytes and starts at a
 * multiple of 256.
 *
 * @throws ERR_INVALID_ARGUMENT as `createEpGroup`.
 * @example
 * ```ts
 * const { handle } = layoutOf({ experts: 8, topK: 2, hidden: 64, dtype: 'bf16', maxTokensPerRank: 16 }, 4);
 * handle.slots.bytes; // 512: i32 for 4 ranks, 16 tokens and 2 entries
 * ```
 */
export function layoutOf(config: EpConfig, ranks: number): EpMemoryLayout {
  return layoutOfSettings(parseConfig(config, ranks));
}

export function layoutOfSettings(settings: EpSettings): EpMemoryLayout {
  const { ranks, contexts, maxTokensPerRank, topK, map } = settings;
  const entries = maxTokensPerRank * topK;
  return {
    group: place({ contexts: contexts * contextBytes(ranks), calls: maxEpCalls * callBytes }),
    handle: place({
      experts: 4 * entries,
      weights: 4 * entries,
      slots: 4 * ranks * entries,
      counts: 8 * (2 * map.mostLocal + ranks + 8),
    }),
  };
}

/** One section after the other, each at a multiple of the alignment. */
function place<N extends string>(
  sizes: Readonly<Record<N, number>>,
): Readonly<Record<N, EpSection>> & { readonly bytes: number } {
  let end = 0;
  const sections: Record<string, EpSection> = {};
  for (const [name, bytes] of Object.entries<number>(sizes)) {
    const byteOffset = Math.ceil(end / epAlignment) * epAlignment;
    sections[name] = { byteOffset, bytes };
    end = byteOffset + bytes;
  }
  return { ...(sections as Record<N, EpSection>), bytes: end };
}
