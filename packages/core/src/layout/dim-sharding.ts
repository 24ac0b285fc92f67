// SPDX-License-Identifier: Apache-2.0
// Works out what every coordinate holds of one dimension when several mesh axes split it one after another.

import type { DeviceMesh } from '../mesh/device-mesh.js';
import { composeRuns } from './compose-runs.js';
import { dimRuns } from './fold-runs.js';
import type { Placement } from './placement.js';
import type { DimRuns } from './runs.js';
import { splitRuns } from './split-runs.js';

/** How one tensor dimension is shared out. */
export interface DimSharding {
  /** Indices of the mesh axes that shard this dimension, left to right; none: every rank holds all of it. */
  readonly axes: readonly number[];
  /** Indexed by the flattened coordinate over those axes, row-major. Coordinates that hold the same share one object. */
  readonly runs: readonly DimRuns[];
}

/** Axes from left to right, each splitting the local index space that the previous ones left. */
export function dimSharding(
  dim: number,
  extent: number,
  mesh: DeviceMesh,
  placements: readonly Placement[],
): DimSharding {
  const intern = interner();
  const axes: number[] = [];
  let runs: readonly DimRuns[] = [intern(dimRuns([{ start: 0, length: extent }]))];
  placements.forEach((placement, axis) => {
    if (placement.kind !== 'shard' || placement.dim !== dim) return;
    axes.push(axis);
    const n = mesh.axes[axis]!.size;
    // Equal parents are one object, so each is split once.
    const split = new Map<DimRuns, readonly DimRuns[]>();
    for (const parent of new Set(runs)) {
      const shares = Array.from({ length: n }, (_, index) =>
        splitRuns(placement.split, n, parent.extent, index),
      );
      split.set(
        parent,
        shares.map((share) => intern(composeRuns(parent, share))),
      );
    }
    runs = runs.flatMap((parent) => split.get(parent)!);
  });
  return Object.freeze({ axes: Object.freeze(axes), runs: Object.freeze(runs) });
}

/** Equal content has equal form, so the form is the key. */
function interner(): (runs: DimRuns) => DimRuns {
  const known = new Map<string, DimRuns>();
  return (dim) => {
    const key = dim.runs
      .map(({ start, length, stride, count }) => `${start},${length},${stride},${count}`)
      .join(';');
    const first = known.get(key);
    if (first === undefined) known.set(key, dim);
    return first ?? dim;
  };
}
