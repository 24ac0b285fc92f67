// SPDX-License-Identifier: Apache-2.0
// Divides a demand among its suppliers so that those with less to do get more of it.

import { cutPosition } from './cut-position.js';
import { blockAt, type DemandBlock, type DemandLine, lengthOf } from './demand-line.js';
import { alignment, type Granule } from './move-shape.js';
import type { PlanClass, PlanContext } from './plan-class.js';
import type { Atom } from './side.js';

/**
 * Cut positions on the line, one more than suppliers: supplier k serves [cuts[k], cuts[k + 1]).
 *
 * @param loads what each supplier sends already, in elements
 * @param tolerance elements by which a cut may miss its place to keep a cell whole
 */
export function shareOut(
  context: PlanContext,
  cls: PlanClass,
  a: Atom,
  line: DemandLine,
  loads: readonly number[],
  tolerance: number,
): Float64Array {
  const total = lengthOf(line);
  const wireBytes = cls.destination.elementBytes;
  const limit = Math.max(alignment, (tolerance * wireBytes) / 2);
  const granules = new Map<DemandBlock, Granule>();
  const granuleOf = (block: DemandBlock): Granule => {
    let granule = granules.get(block);
    if (!granule) {
      const { b } = block;
      granule = context.shape(cls, a, b, a.members[0]!, b.members[0]!, false).granule(limit, wireBytes);
      granules.set(block, granule);
    }
    return granule;
  };
  const cuts = new Float64Array(loads.length + 1);
  let wanted = 0;
  waterFill(loads, total).forEach((quota, k) => {
    wanted += quota;
    const last = k === loads.length - 1;
    cuts[k + 1] = last ? total : Math.max(cuts[k]!, place(line, wanted, tolerance, granuleOf));
  });
  return cuts;
}

/** Adds `total` to the loads so that the highest level is as low as possible; what each gets. */
function waterFill(loads: readonly number[], total: number): number[] {
  const sorted = loads.toSorted((x, y) => x - y);
  let level = 0;
  let below = 0;
  for (let i = 0; i < sorted.length; i++) {
    below += sorted[i]!;
    level = (total + below) / (i + 1);
    if (i + 1 === sorted.length || level <= sorted[i + 1]!) break;
  }
  return loads.map((load) => Math.max(0, level - load));
}

function place(
  line: DemandLine,
  wanted: number,
  tolerance: number,
  granuleOf: (block: DemandBlock) => Granule,
): number {
  const i = blockAt(line, wanted);
  const block = line.blocks[i];
  if (!block) return lengthOf(line);
  const { cell, from, to } = block;
  const start = i === 0 ? 0 : line.ends[i - 1]!;
  const rank = Math.floor((wanted - start) / (to - from));
  const rankStart = start + rank * (to - from);
  const at = cutPosition(from + (wanted - rankStart), cell, tolerance, () => granuleOf(block));
  return rankStart + Math.min(to, Math.max(from, at)) - from;
}
