// SPDX-License-Identifier: Apache-2.0
// Lays everything that is wanted of an atom on one line, so that suppliers share it by cutting the line.

import { ranksIn } from './domain-groups.js';
import { eachOutsideShare } from './domain-shares.js';
import type { PlanClass, PlanContext } from './plan-class.js';
import { type Atom, without } from './side.js';

/** Ranks that want the same: elements [from, to) of the cell with `b`, counted through all tensors of the class one after another. */
export interface DemandBlock {
  readonly b: Atom;
  readonly ranks: Int32Array | readonly number[];
  readonly from: number;
  readonly to: number;
  /** Elements of the cell, for one tensor. */
  readonly cell: number;
}

/** Demand in order: block by block, in a block rank by rank. */
export interface DemandLine {
  readonly blocks: readonly DemandBlock[];
  /** Elements of this and all earlier blocks. */
  readonly ends: readonly number[];
}

/** What is wanted of `a` by a domain that has sources of it, or by all domains without one (-1). */
export function demandLine(context: PlanContext, cls: PlanClass, a: Atom, domain: number): DemandLine {
  return domain < 0 ? demandOutside(context, cls, a) : demandWithin(context, cls, a, domain);
}

/** Each rank of the domain wants all of its cells. */
function demandWithin(context: PlanContext, cls: PlanClass, a: Atom, domain: number): DemandLine {
  const { atoms, elements } = cls.destination.cellsOf(a.region);
  const blocks: DemandBlock[] = [];
  atoms.forEach((b, i) => {
    const cell = elements[i]!;
    const ranks = without(ranksIn(context.domains.of(b), domain), a.ranks);
    if (ranks.length > 0) blocks.push({ b, ranks, from: 0, to: cell * cls.entries.length, cell });
  });
  return lineOf(blocks);
}

/**
 * One copy enters each domain, through its members. Ordered by the rail of the receiver: with suppliers in the same
 * order most pieces stay on their rail.
 */
function demandOutside(context: PlanContext, cls: PlanClass, a: Atom): DemandLine {
  const { rail } = context.topology;
  const byRail = new Map<number, DemandBlock[]>();
  eachOutsideShare(context, cls, a, (b, cell, { members, from, to }, start, end) => {
    for (let i = start; i < end; i++) {
      if (from[i] === to[i]) continue;
      const on = rail[members[i]!]!;
      const block = { b, ranks: [members[i]!], from: from[i]!, to: to[i]!, cell };
      const blocks = byRail.get(on);
      if (blocks) blocks.push(block);
      else byRail.set(on, [block]);
    }
  });
  return lineOf([...byRail].sort(([x], [y]) => x - y).flatMap(([, blocks]) => blocks));
}

/** Calls `visit` for each rank that has something on the line positions [from, to), with that part of its block's elements. */
export function eachPiece(
  line: DemandLine,
  from: number,
  to: number,
  visit: (block: DemandBlock, rank: number, from: number, to: number) => void,
): void {
  for (let i = blockAt(line, from); i < line.blocks.length; i++) {
    const block = line.blocks[i]!;
    const start = i === 0 ? 0 : line.ends[i - 1]!;
    if (start >= to) return;
    const size = block.to - block.from;
    const first = Math.max(0, Math.floor((from - start) / size));
    for (let k = first; k < block.ranks.length && start + k * size < to; k++) {
      const at = start + k * size;
      const low = Math.max(from - at, 0);
      const high = Math.min(to - at, size);
      if (low < high) visit(block, block.ranks[k]!, block.from + low, block.from + high);
    }
  }
}

/** The block that holds a position of the line. */
export function blockAt({ ends }: DemandLine, position: number): number {
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ends[middle]! <= position) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Elements of the whole line. */
export function lengthOf({ ends }: DemandLine): number {
  return ends.at(-1) ?? 0;
}

function lineOf(blocks: readonly DemandBlock[]): DemandLine {
  let end = 0;
  const ends = blocks.map(({ ranks, from, to }) => {
    end += ranks.length * (to - from);
    return end;
  });
  return { blocks, ends };
}
