// SPDX-License-Identifier: Apache-2.0
// Enumerates what one rank sends, forwards and copies.

import { demandLine, eachPiece, lengthOf } from './demand-line.js';
import { positionOf, ranksIn } from './domain-groups.js';
import { sharesIn } from './domain-shares.js';
import { eachKept, eachWanted, type Visit } from './flow.js';
import type { PlanClass, PlanContext } from './plan-class.js';
import { type Atom, includes, type Member, membersOf, primaryMember } from './side.js';
import { suppliersOf } from './suppliers.js';

/** What `rank` executes for a class: within each (stage, peer) by source atom, destination atom, position. */
export function flowsFrom(context: PlanContext, cls: PlanClass, rank: number, visit: Visit): void {
  for (const a of cls.source.atomsOf(rank)) {
    const reader = primaryMember(a, rank);
    eachKept(cls, a, reader, rank, visit);
    serve(context, cls, a, reader, rank, context.topology.domain[rank]!, visit);
    if (!context.topology.single) serve(context, cls, a, reader, rank, -1, visit);
  }
  eachWanted(cls, rank, (a, b, cell) => {
    if (includes(a.ranks, rank)) return;
    const [first, ...repeats] = membersOf(b, rank);
    const repeat = (from: number, to: number): void => {
      for (const writer of repeats)
        visit({ stage: 1, peer: rank, a, b, reader: first!, writer, cell, from, to });
    };
    const domain = context.topology.domain[rank]!;
    if (positionOf(context.domains.of(a).domains, domain) >= 0) {
      repeat(0, cell * cls.entries.length);
      return;
    }
    const shares = context.shares.of(cls, a, b, cell);
    const own = sharesIn(shares, domain).find((share) => share.rank === rank);
    if (!own) return;
    const { from, to } = own;
    for (const peer of ranksIn(shares.groups, domain)) {
      if (peer === rank) {
        repeat(from, to);
        continue;
      }
      for (const writer of membersOf(b, peer)) {
        visit({ stage: 1, peer, a, b, reader: first!, writer, cell, from, to });
      }
    }
  });
}

/** This supplier's part of a demand. */
function serve(
  context: PlanContext,
  cls: PlanClass,
  a: Atom,
  reader: Member,
  rank: number,
  domain: number,
  visit: Visit,
): void {
  const suppliers = suppliersOf(context, a, domain);
  const cuts = context.cutsOf(cls, a, domain);
  if (suppliers.length > 1 && !cuts) return; // nobody wants anything
  const line = demandLine(context, cls, a, domain);
  const k = suppliers.indexOf(rank);
  const from = cuts ? cuts[k]! : 0;
  const to = cuts ? cuts[k + 1]! : lengthOf(line);
  eachPiece(line, from, to, ({ b, cell }, peer, low, high) => {
    visit({ stage: 0, peer, a, b, reader, writer: primaryMember(b, peer), cell, from: low, to: high });
  });
}
