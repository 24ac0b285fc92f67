// SPDX-License-Identifier: Apache-2.0
// Reads placements the slow and obvious way: which positions of a dimension a coordinate holds, as a list that every mesh axis cuts in turn.
// It shares nothing with the layout algebra of core, so that both must be right for a case to pass.

import type { Split } from '@nccl-ext/core';
import type { SideSpec } from '../cases/case.js';

/** Consecutive positions of one dimension. */
export interface Interval {
  readonly start: number;
  readonly length: number;
}

/** The ranks of a side, in mesh order. */
export function ranksOf({ axes, ranks, startRank = 0 }: SideSpec): readonly number[] {
  const size = Object.values(axes).reduce((product, axis) => product * axis, 1);
  return ranks ?? Array.from({ length: size }, (_, position) => startRank + position);
}

/** What `rank` holds of each dimension, in local order; undefined when it is not in the mesh. */
export function heldIntervals(
  shape: readonly number[],
  side: SideSpec,
  rank: number,
): readonly (readonly Interval[])[] | undefined {
  const position = ranksOf(side).indexOf(rank);
  if (position < 0) return undefined;
  return shape.map((extent, dim) => {
    let held: readonly Interval[] = extent === 0 ? [] : [{ start: 0, length: extent }];
    let below = ranksOf(side).length;
    for (const [name, size] of Object.entries(side.axes)) {
      below /= size;
      const placement = side.placements[name];
      if (placement?.kind !== 'shard' || placement.dim !== dim) continue;
      const coordinate = Math.floor(position / below) % size;
      const total = lengthOf(held);
      held = picks(placement.split, size, total, coordinate).flatMap((pick) => positions(held, pick));
    }
    return merge(held);
  });
}

/** Sum of lengths. */
export function lengthOf(list: readonly Interval[]): number {
  return list.reduce((sum, { length }) => sum + length, 0);
}

/** Parts of [0, total) that coordinate `i` of `n` takes, in local order. */
function picks(split: Split, n: number, total: number, i: number): readonly Interval[] {
  const chunkOf = (offset: number, extent: number): Interval => {
    const size = Math.ceil(extent / n);
    const start = Math.min(extent, i * size);
    return { start: offset + start, length: Math.min(extent, start + size) - start };
  };
  switch (split.kind) {
    case 'even':
    case 'chunk':
      return [chunkOf(0, total)];
    case 'sizes':
      return [
        {
          start: split.sizes.slice(0, i).reduce((sum, size) => sum + size, 0),
          length: split.sizes[i]!,
        },
      ];
    case 'ranges': {
      const [start, end] = split.ranges[i]!;
      return [{ start, length: end - start }];
    }
    case 'strided': {
      const segment = total / split.groups;
      return Array.from({ length: split.groups }, (_, group) => chunkOf(group * segment, segment));
    }
    case 'interleaved': {
      const starts = split.segments.map((_, s) =>
        split.segments.slice(0, s).reduce((sum, segment) => sum + segment, 0),
      );
      return split.segments.map((segment, s) => chunkOf(starts[s]!, segment));
    }
    case 'blockCyclic': {
      const list: Interval[] = [];
      for (let start = i * split.block; start < total; start += n * split.block) {
        list.push({ start, length: Math.min(split.block, total - start) });
      }
      return list;
    }
  }
}

/** The positions that are number [pick.start, pick.start + pick.length) of `held`. */
function positions(held: readonly Interval[], pick: Interval): readonly Interval[] {
  const end = pick.start + pick.length;
  const found: Interval[] = [];
  let before = 0;
  for (const { start, length } of held) {
    const from = Math.max(pick.start, before);
    const to = Math.min(end, before + length);
    if (from < to) found.push({ start: start + from - before, length: to - from });
    before += length;
  }
  return found;
}

function merge(list: readonly Interval[]): readonly Interval[] {
  const merged: Interval[] = [];
  for (const interval of list) {
    const last = merged.at(-1);
    if (last !== undefined && last.start + last.length === interval.start) {
      merged[merged.length - 1] = { start: last.start, length: last.length + interval.length };
    } else if (interval.length > 0) merged.push(interval);
  }
  return merged;
}
