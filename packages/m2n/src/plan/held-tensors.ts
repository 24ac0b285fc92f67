// SPDX-License-Identifier: Apache-2.0
// Lists what one rank must bind before it can take part: which stored tensors, and how far the plan reaches into them.

import { type DType, dtypeBytes } from '@nccl-ext/core';
import type { SideCopy } from './plan-request.js';
import { includes, type Side } from './side.js';
import type { Part } from './side-pattern.js';

/** A tensor of which a rank holds something on one side. */
export interface HeldTensor {
  /** Index in `plan.tensors`, in `MoveTable.tensor` and in the bindings. */
  readonly tensor: number;
  readonly name: string;
  readonly storage: string;
  readonly dtype: DType;
  /** One past the last byte that the plan may touch, counted from the first byte of the storage. */
  readonly requiredBytes: number;
  /** Local extents; undefined when the rank holds several parts in this storage. */
  readonly localShape: readonly number[] | undefined;
  readonly parts: readonly Part[];
}

/** What a rank holds of tensors that lie the same way, per storage slot; `copy` names the storage. */
export interface HeldSlot {
  readonly slot: number;
  readonly copy: number;
  readonly requiredBytes: number;
  readonly localShape: readonly number[] | undefined;
  readonly parts: readonly Part[];
}

/** Slots in which a rank holds non-empty parts. */
export function heldSlots(side: Side, rank: number): readonly HeldSlot[] {
  if (!side.has(rank)) return [];
  const bySlot = new Map<number, { copy: number; parts: Part[] }>();
  side.copies.forEach(({ pattern }: SideCopy, copy) => {
    for (const part of pattern.parts) {
      if (!includes(part.ranks, rank) || part.dims.some(({ extent }) => extent === 0)) continue;
      const slot = side.slotOf({ copy }, rank);
      const held = bySlot.get(slot);
      if (held) held.parts.push(part);
      else bySlot.set(slot, { copy, parts: [part] });
    }
  });
  return [...bySlot].map(([slot, { copy, parts }]) => ({
    slot,
    copy,
    requiredBytes: Math.max(...parts.map((part) => reach(part, dtypeBytes(side.dtype)))),
    localShape: parts.length === 1 ? parts[0]!.dims.map(({ extent }) => extent) : undefined,
    parts,
  }));
}

function reach({ dims, byteOffset, byteStrides }: Part, elementBytes: number): number {
  return dims.reduce((sum, { extent }, d) => sum + (extent - 1) * byteStrides[d]!, byteOffset) + elementBytes;
}
