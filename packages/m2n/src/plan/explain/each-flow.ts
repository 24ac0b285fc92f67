// SPDX-License-Identifier: Apache-2.0
// Visits everything that goes between ranks or within one, for figures over a whole plan.

import { demandLine, eachPiece, lengthOf } from '../demand-line.js';
import { positionOf, ranksIn } from '../domain-groups.js';
import { eachOutsideShare } from '../domain-shares.js';
import { eachKept } from '../flow.js';
import type { PlanClass, PlanContext } from '../plan-class.js';
import { type Atom, includes, membersOf, primaryMember } from '../side.js';
import { suppliersOf } from '../suppliers.js';

/** `sender` executes it; elements of the destination's dtype, over all tensors of the class. */
type VisitBytes = (stage: 0 | 1, sender: number, receiver: number, elements: number) => void;

export function eachFlow(context: PlanContext, cls: PlanClass, visit: VisitBytes): void {
  for (const a of cls.source.atoms) {
    for (const rank of a.ranks) {
      eachKept(cls, a, primaryMember(a, rank), rank, ({ from, to }) => visit(0, rank, rank, to - from));
    }
    if (a.ranks.length === 1) eachFromOne(context, cls, a, visit);
    else
      for (const domain of [...context.domains.of(a).domains, -1]) eachShared(context, cls, a, domain, visit);
    if (!context.topology.single) eachForward(context, cls, a, visit);
    repeats(context, cls, a, visit);
  }
}

/** Everything that one source sends, without a line to cut. */
function eachFromOne(context: PlanContext, cls: PlanClass, a: Atom, visit: VisitBytes): void {
  const sender = a.ranks[0]!;
  const near = context.topology.domain[sender]!;
  const { atoms, elements } = cls.destination.cellsOf(a.region);
  atoms.forEach((b, i) => {
    const all = elements[i]! * cls.entries.length;
    for (const receiver of ranksIn(context.domains.of(b), near)) {
      if (receiver !== sender) visit(0, sender, receiver, all);
    }
  });
  if (context.topology.single) return;
  eachOutsideShare(context, cls, a, (_b, _cell, { members, from, to }, start, end) => {
    for (let i = start; i < end; i++) if (from[i] !== to[i]) visit(0, sender, members[i]!, to[i]! - from[i]!);
  });
}

function eachShared(context: PlanContext, cls: PlanClass, a: Atom, domain: number, visit: VisitBytes): void {
  if (domain < 0 && context.topology.single) return;
  const suppliers = suppliersOf(context, a, domain);
  const cuts = context.cutsOf(cls, a, domain);
  if (suppliers.length > 1 && !cuts) return;
  const line = demandLine(context, cls, a, domain);
  suppliers.forEach((rank, k) => {
    const from = cuts ? cuts[k]! : 0;
    const to = cuts ? cuts[k + 1]! : lengthOf(line);
    eachPiece(line, from, to, (_block, receiver, low, high) => visit(0, rank, receiver, high - low));
  });
}

function eachForward(context: PlanContext, cls: PlanClass, a: Atom, visit: VisitBytes): void {
  eachOutsideShare(context, cls, a, (b, _cell, { members, from, to }, start, end) => {
    if (end - start === 1 && b.members.length === 1) return;
    for (let i = start; i < end; i++) {
      const share = to[i]! - from[i]!;
      if (share === 0) continue;
      for (let k = start; k < end; k++) {
        const copies = b.members.length === 1 ? 1 : membersOf(b, members[k]!).length;
        const times = k === i ? copies - 1 : copies;
        if (times > 0) visit(1, members[i]!, members[k]!, share * times);
      }
    }
  });
}

/** Ranks served by their own domain that keep the atom in several places. */
function repeats(context: PlanContext, cls: PlanClass, a: Atom, visit: VisitBytes): void {
  const { atoms, elements } = cls.destination.cellsOf(a.region);
  const sources = context.domains.of(a).domains;
  atoms.forEach((b, i) => {
    if (b.members.length === 1) return;
    for (const rank of b.ranks) {
      const extra = membersOf(b, rank).length - 1;
      if (extra === 0 || includes(a.ranks, rank)) continue;
      if (positionOf(sources, context.topology.domain[rank]!) < 0) continue;
      visit(1, rank, rank, extra * elements[i]! * cls.entries.length);
    }
  });
}
