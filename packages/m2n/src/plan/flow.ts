// SPDX-License-Identifier: Apache-2.0
// What goes from one rank to another, before it becomes moves; sender and receiver name the same flows in the same order.

import type { PlanClass } from './plan-class.js';
import { type Atom, includes, type Member, membersOf } from './side.js';

/** Elements [from, to) of the cell of `a` and `b`, counted through all tensors of the class. */
export interface Flow {
  /** 0: the reader keeps `a` at a source; 1: the reader keeps `b` at a destination and forwards or repeats it. */
  readonly stage: 0 | 1;
  /** The other rank; this rank itself for local copies. */
  readonly peer: number;
  readonly a: Atom;
  readonly b: Atom;
  readonly reader: Member;
  readonly writer: Member;
  /** Elements of the cell, for one tensor. */
  readonly cell: number;
  readonly from: number;
  readonly to: number;
}

export type Visit = (flow: Flow) => void;

/** The cells that a destination rank wants, by source atom, then destination atom. */
export function eachWanted(
  cls: PlanClass,
  rank: number,
  visit: (a: Atom, b: Atom, cell: number) => void,
): void {
  const wanted = cls.destination.atomsOf(rank);
  const found: { a: Atom; b: Atom; cell: number }[] = [];
  for (const b of wanted) {
    const { atoms, elements } = cls.source.cellsOf(b.region);
    atoms.forEach((a, i) => {
      found.push({ a, b, cell: elements[i]! });
    });
  }
  if (wanted.length > 1) found.sort((x, y) => x.a.index - y.a.index || x.b.index - y.b.index);
  for (const { a, b, cell } of found) visit(a, b, cell);
}

/** Copies of a source holder to itself. */
export function eachKept(cls: PlanClass, a: Atom, reader: Member, rank: number, visit: Visit): void {
  if (!cls.destination.has(rank)) return;
  const { atoms, elements } = cls.destination.cellsOf(a.region);
  atoms.forEach((b, i) => {
    if (!includes(b.ranks, rank)) return;
    const cell = elements[i]!;
    for (const writer of membersOf(b, rank)) {
      visit({ stage: 0, peer: rank, a, b, reader, writer, cell, from: 0, to: cell * cls.entries.length });
    }
  });
}
