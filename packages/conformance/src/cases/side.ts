// SPDX-License-Identifier: Apache-2.0
// Short ways to write the two sides of a tensor.

import { type Placement, replicate, shard } from '@nccl-ext/core';
import type { M2nCase, SideSpec } from './case.js';
import type { GroupName } from './groups.js';

/** `ranks` ranks from `startRank` on one axis. */
export function line(ranks: number, placement: Placement, startRank = 0): SideSpec {
  return { axes: { x: ranks }, startRank, placements: { x: placement } };
}

/** Two axes; the second is fastest. */
export function grid(
  rows: number,
  columns: number,
  placements: readonly [Placement, Placement],
  startRank = 0,
): SideSpec {
  return {
    axes: { y: rows, x: columns },
    startRank,
    placements: { y: placements[0], x: placements[1] },
  };
}

/** The same side on these ranks. */
export function onRanks(side: SideSpec, ranks: readonly number[]): SideSpec {
  const { axes, placements } = side;
  return { axes, ranks, placements };
}

/** `shards` shards of `dim` times replicas; `sr` shards over the first axis, `rs` over the second. */
export function shardsTimesReplicas(
  order: 'sr' | 'rs',
  axes: readonly [number, number],
  dim: number,
  startRank = 0,
): SideSpec {
  const split = shard(dim);
  return grid(...axes, order === 'sr' ? [split, replicate()] : [replicate(), split], startRank);
}

/** A case that moves tensors. */
export function moveCase(
  group: GroupName,
  what: string,
  ranks: number,
  tensors: M2nCase['tensors'],
  more: Partial<Omit<M2nCase, 'kind' | 'group' | 'name' | 'ranks' | 'tensors'>> = {},
): M2nCase {
  return { kind: 'move', name: `${group}/${what}`, group, ranks, tensors, ...more };
}
