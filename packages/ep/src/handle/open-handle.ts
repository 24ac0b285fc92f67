// SPDX-License-Identifier: Apache-2.0
// Checks what a handle is to be, and makes the backend's.

import { NcclExtError } from '@nccl-ext/core';
import { type EpHandleHandle, type EpLayout, epLayouts } from '@nccl-ext/core/contract';
import { describe, unwrap } from '@nccl-ext/core/extend';
import { requireNames } from '../config/require-values.js';
import type { GroupCore } from '../group/group-core.js';
import { type ClaimedMemory, claimMemory } from '../memory/claim-memory.js';
import type { EpMemorySource } from '../memory/memory-source.js';
import { requireAlignment } from '../memory/require-alignment.js';

/** Options of `group.createHandle`; equal on all ranks, `memory` apart. */
export interface HandleOptions<L extends EpLayout> {
  readonly layout: L;
  /** Packed: each zone starts at and is padded to a multiple of this many rows, a power of two. Default 1. */
  readonly alignment?: (L extends 'packed' ? number : 1) | undefined;
  /** Where the routing state lives; default as the group's. */
  readonly memory?: EpMemorySource | undefined;
}

/** A backend's handle and its memory. */
export interface OpenedHandle {
  readonly handle: EpHandleHandle;
  readonly claimed: ClaimedMemory;
}

export function openHandle(
  core: GroupCore,
  options: HandleOptions<EpLayout>,
): { readonly opened: OpenedHandle; readonly alignment: number } {
  requireNames('the options of a handle', options, ['layout', 'alignment', 'memory']);
  const { layout, alignment = 1, memory = core.memory } = options;
  requireLayout(core, layout);
  requireAlignment(layout, alignment);
  const sections = core.layout.handle;
  const claimed = claimMemory(core.communicator, memory, 'handle', sections.bytes);
  try {
    const config = { layout, alignment, memory: claimed.range, sections };
    return { opened: { handle: unwrap(core.ep.createEpHandle(core.handle, config)), claimed }, alignment };
  } catch (error) {
    claimed.release();
    throw error;
  }
}

function requireLayout({ settings }: GroupCore, layout: unknown): void {
  if (!epLayouts.includes(layout as EpLayout)) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `layout must be one of ${epLayouts.join(', ')}, got ${describe(layout)}.`,
      { field: 'layout', expected: epLayouts, seen: layout },
    );
  }
  if (settings.reduction === 'rank' || layout === 'expert-major' || layout === 'packed') return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `layout ${layout} has no reduction by token: its rows are sums over the experts of a rank already.`,
    {
      field: 'layout',
      expected: 'expert-major or packed',
      seen: layout,
      help: "Use expert-major or packed, or create the group with reduction: 'rank'.",
    },
  );
}
