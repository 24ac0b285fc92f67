// SPDX-License-Identifier: Apache-2.0
// Turns a layout into a side pattern: one part per distinct coordinate over the axes that shard, its replicas as ranks.

import { type DimRuns, Layout, NcclExtError } from '@nccl-ext/core';
import { describe } from '@nccl-ext/core/extend';
import { type PartInput, type SidePattern, sidePattern } from './side-pattern.js';

/** Where ranks keep their local tensor inside a larger stored one. Absent functions: at byte 0, dense and row-major. */
export interface StoragePlacement {
  readonly byteOffset?: (rank: number) => number;
  readonly byteStrides?: (rank: number) => readonly number[];
}

const plain = new WeakMap<Layout, SidePattern>();

/**
 * The pattern of a layout. Without `storage` the same layout object always gives the same pattern object.
 *
 * @example
 * ```ts
 * // q of a fused qkv buffer: it starts at byte 0, k and v behind it.
 * patternOf(kLayout, { byteOffset: (rank) => qLayout.localBytes(rank) });
 * ```
 */
export function patternOf(layout: Layout, storage?: StoragePlacement): SidePattern {
  if (!(layout instanceof Layout)) {
    throw new NcclExtError('ERR_LAYOUT', `layout must be a layout, got ${describe(layout)}`, {
      field: 'layout',
      help: 'Make one with layout({ shape, dtype, mesh, placements }).',
    });
  }
  if (storage) return makePattern(layout, storage);
  let pattern = plain.get(layout);
  if (!pattern) {
    pattern = makePattern(layout, {});
    plain.set(layout, pattern);
  }
  return pattern;
}

interface OpenPart {
  readonly dims: readonly DimRuns[];
  readonly ranks: number[];
  readonly byteOffset: number;
  readonly byteStrides?: readonly number[];
}

function makePattern(layout: Layout, { byteOffset, byteStrides }: StoragePlacement): SidePattern {
  const { shape, dtype, mesh, dims } = layout;
  // Position in the mesh is row-major over the axes, so the flattened coordinate of a dim is a mixed-radix pick of digits.
  const digits = mesh.axes.map(({ size }, axis) => {
    const step = mesh.axes.slice(axis + 1).reduce((product, later) => product * later.size, 1);
    return { size, step };
  });
  const open = new Map<string, OpenPart>();
  for (let position = 0; position < mesh.size; position++) {
    const rank = mesh.ranks[position]!;
    let key = '';
    const held: DimRuns[] = [];
    for (const { axes, runs } of dims) {
      let flat = 0;
      for (const axis of axes) {
        const { size, step } = digits[axis]!;
        flat = flat * size + (Math.floor(position / step) % size);
      }
      // Coordinates that hold the same share one object: its first index stands for all.
      const first = axes.length === 0 ? 0 : firstIndex(runs, flat);
      key += `${first},`;
      held.push(runs[first]!);
    }
    const offset = byteOffset?.(rank) ?? 0;
    const strides = byteStrides?.(rank);
    if (byteOffset || strides) key += `@${offset}/${strides?.join()}`;
    const part = open.get(key);
    if (part) part.ranks.push(rank);
    else {
      const stored = strides ? { byteStrides: strides } : {};
      open.set(key, { dims: held, ranks: [rank], byteOffset: offset, ...stored });
    }
  }
  const parts: PartInput[] = [...open.values()].filter(({ dims: held }) =>
    held.every(({ extent }) => extent > 0),
  );
  return sidePattern({ dtype, shape, parts });
}

const firstIndices = new WeakMap<readonly DimRuns[], Int32Array>();

function firstIndex(runs: readonly DimRuns[], flat: number): number {
  let table = firstIndices.get(runs);
  if (!table) {
    const known = new Map<DimRuns, number>();
    table = Int32Array.from(runs, (dim, i) => {
      const first = known.get(dim);
      if (first === undefined) known.set(dim, i);
      return first ?? i;
    });
    firstIndices.set(runs, table);
  }
  return table[flat]!;
}
