// SPDX-License-Identifier: Apache-2.0
// Enumerates what arrives at one rank, without looking at what other ranks receive where that can be avoided.

import { type DemandLine, demandLine } from './demand-line.js';
import { positionOf } from './domain-groups.js';
import { type Share, sharesIn } from './domain-shares.js';
import { eachWanted, type Visit } from './flow.js';
import type { PlanClass, PlanContext } from './plan-class.js';
import { type Atom, includes, type Member, membersOf, primaryMember } from './side.js';
import { suppliersOf } from './suppliers.js';

/** What arrives at `rank` for a class, local copies included, in the order of each sender. */
export function flowsTo(context: PlanContext, cls: PlanClass, rank: number, visit: Visit): void {
  const domain = context.topology.domain[rank]!;
  const lines = new LineCache(context, cls);
  eachWanted(cls, rank, (a, b, cell) => {
    const writers = membersOf(b, rank);
    const [first, ...repeats] = writers;
    if (includes(a.ranks, rank)) {
      const reader = primaryMember(a, rank);
      const to = cell * cls.entries.length;
      for (const writer of writers) visit({ stage: 0, peer: rank, a, b, reader, writer, cell, from: 0, to });
      return;
    }
    const near = positionOf(context.domains.of(a).domains, domain) >= 0;
    receive(context, cls, lines, a, b, first!, cell, rank, near ? domain : -1, visit);
    const repeat = (from: number, to: number): void => {
      for (const writer of repeats)
        visit({ stage: 1, peer: rank, a, b, reader: first!, writer, cell, from, to });
    };
    if (near) {
      repeat(0, cell * cls.entries.length);
      return;
    }
    for (const { rank: peer, from, to } of sharesIn(context.shares.of(cls, a, b, cell), domain)) {
      if (peer === rank) {
        repeat(from, to);
        continue;
      }
      const reader = primaryMember(b, peer);
      for (const writer of writers) visit({ stage: 1, peer, a, b, reader, writer, cell, from, to });
    }
  });
}

/** The suppliers' parts of what one rank receives of a cell. */
function receive(
  context: PlanContext,
  cls: PlanClass,
  lines: LineCache,
  a: Atom,
  b: Atom,
  writer: Member,
  cell: number,
  rank: number,
  domain: number,
  visit: Visit,
): void {
  const cuts = context.cutsOf(cls, a, domain);
  if (!cuts) {
    const peer = suppliersOf(context, a, domain)[0]!;
    const all = { from: 0, to: cell * cls.entries.length };
    const own = domain >= 0 ? all : shareOf(context, cls, a, b, cell, rank);
    if (own)
      visit({
        stage: 0,
        peer,
        a,
        b,
        reader: primaryMember(a, peer),
        writer,
        cell,
        from: own.from,
        to: own.to,
      });
    return;
  }
  const suppliers = suppliersOf(context, a, domain);
  const line = lines.of(a, domain);
  line.blocks.forEach((block, i) => {
    if (block.b !== b) return;
    const position = block.ranks.indexOf(rank);
    if (position < 0) return;
    const size = block.to - block.from;
    const start = (i === 0 ? 0 : line.ends[i - 1]!) + position * size;
    for (let k = supplierAt(cuts, start); k < suppliers.length && cuts[k]! < start + size; k++) {
      const peer = suppliers[k]!;
      const from = block.from + Math.max(start, cuts[k]!) - start;
      const to = block.from + Math.min(start + size, cuts[k + 1]!) - start;
      if (from < to) visit({ stage: 0, peer, a, b, reader: primaryMember(a, peer), writer, cell, from, to });
    }
  });
}

/** What of a cell enters its domain through this rank. */
function shareOf(
  context: PlanContext,
  cls: PlanClass,
  a: Atom,
  b: Atom,
  cell: number,
  rank: number,
): Share | undefined {
  const shares = sharesIn(context.shares.of(cls, a, b, cell), context.topology.domain[rank]!);
  return shares.find((share) => share.rank === rank);
}

/** The first supplier whose part ends behind a position. */
function supplierAt(cuts: Float64Array, position: number): number {
  let low = 0;
  let high = cuts.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (cuts[middle + 1]! <= position) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Source atoms come in order, so one line at a time is enough. */
class LineCache {
  readonly #context: PlanContext;
  readonly #cls: PlanClass;
  #a: Atom | undefined;
  #domain = 0;
  #line: DemandLine | undefined;

  constructor(context: PlanContext, cls: PlanClass) {
    this.#context = context;
    this.#cls = cls;
  }

  of(a: Atom, domain: number): DemandLine {
    if (a !== this.#a || domain !== this.#domain || !this.#line) {
      this.#a = a;
      this.#domain = domain;
      this.#line = demandLine(this.#context, this.#cls, a, domain);
    }
    return this.#line;
  }
}
