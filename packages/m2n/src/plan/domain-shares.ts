// SPDX-License-Identifier: Apache-2.0
// Divides the one copy of a cell that enters an NVLink domain among the members who want it; they forward their shares to each other.

import { cutPosition } from './cut-position.js';
import { type DomainGroups, positionOf } from './domain-groups.js';
import type { Granule } from './move-shape.js';
import type { PlanClass, PlanContext } from './plan-class.js';
import type { Atom } from './side.js';

/** Cells below twice this many bytes enter a domain through one member. */
const smallestShare = 64 * 1024;
/** Rows up to this many bytes are not cut between members. */
const wholeRow = 4096;
/** Members begin at one of so many places; few, so that tensors that are alike share their tables. */
const rotations = 64;

/** The shares of one cell in every domain that wants it. Those of domain `groups.domains[i]` are at groups.starts[i] .. groups.starts[i + 1]. */
export interface DomainShares {
  readonly groups: DomainGroups;
  readonly members: Int32Array;
  /** Elements [from, to) of the cell, counted through all tensors of the class; empty where a member receives nothing. */
  readonly from: Float64Array;
  readonly to: Float64Array;
}

/** Tables of the shares of one plan. They depend on the geometry of a cell, not on who supplies it. */
export class ShareTable {
  readonly #context: PlanContext;
  readonly #known = new Map<Atom, Map<number, DomainShares>>();
  readonly #geometries = new Map<string, number>();
  readonly #geometryOf = new Map<Atom, number>();

  constructor(context: PlanContext) {
    this.#context = context;
  }

  of(cls: PlanClass, a: Atom, b: Atom, cell: number): DomainShares {
    let known = this.#known.get(b);
    if (!known) {
      known = new Map();
      this.#known.set(b, known);
    }
    const rotation = (cls.index + a.index) % rotations;
    const key = (this.#geometry(a) * rotations + rotation) * 2 ** 24 + cls.entries.length;
    let shares = known.get(key);
    if (!shares) {
      shares = this.#make(cls, a, b, cell, rotation);
      known.set(key, shares);
    }
    return shares;
  }

  /** What of a source atom decides where cells are cut: its region, and where rows end in its storage. */
  #geometry(a: Atom): number {
    let number = this.#geometryOf.get(a);
    if (number === undefined) {
      const text = `${a.region.id}/${a.members[0]!.byteStrides.join()}`;
      number = this.#geometries.get(text) ?? this.#geometries.size;
      this.#geometries.set(text, number);
      this.#geometryOf.set(a, number);
    }
    return number;
  }

  #make(cls: PlanClass, a: Atom, b: Atom, cell: number, rotation: number): DomainShares {
    const groups = this.#context.domains.of(b);
    const members = new Int32Array(groups.ranks.length);
    const from = new Float64Array(members.length);
    const to = new Float64Array(members.length);
    const all = cell * cls.entries.length;
    const wireBytes = cls.destination.elementBytes;
    let known: Granule | undefined;
    const granule = (): Granule => {
      known ??= this.#context
        .shape(cls, a, b, a.members[0]!, b.members[0]!, false)
        .granule(wholeRow, wireBytes);
      return known;
    };
    groups.domains.forEach((domain, i) => {
      const start = groups.starts[i]!;
      const count = groups.starts[i + 1]! - start;
      const first = (rotation + b.index + domain) % count;
      let end = 0;
      for (let j = 0; j < count; j++) {
        members[start + j] = groups.ranks[start + ((first + j) % count)]!;
        from[start + j] = end;
        const at = cutPosition((all * (j + 1)) / count, cell, smallestShare / wireBytes / 2, granule);
        end = j === count - 1 ? all : Math.min(all, Math.max(end, at));
        to[start + j] = end;
      }
    });
    return { groups, members, from, to };
  }
}

/** Calls `visit` for each cell of `a` and each domain that wants it and has no source: its shares are at [start, end). */
export function eachOutsideShare(
  context: PlanContext,
  cls: PlanClass,
  a: Atom,
  visit: (b: Atom, cell: number, shares: DomainShares, start: number, end: number) => void,
): void {
  const sources = context.domains.of(a).domains;
  const { atoms, elements } = cls.destination.cellsOf(a.region);
  for (let i = 0; i < atoms.length; i++) {
    const shares = context.shares.of(cls, a, atoms[i]!, elements[i]!);
    const { domains, starts } = shares.groups;
    for (let k = 0; k < domains.length; k++) {
      if (positionOf(sources, domains[k]!) >= 0) continue;
      visit(atoms[i]!, elements[i]!, shares, starts[k]!, starts[k + 1]!);
    }
  }
}

/** A member's share of what enters its domain. */
export interface Share {
  readonly rank: number;
  readonly from: number;
  readonly to: number;
}

/** The shares, none of them empty, in one domain. */
export function sharesIn({ groups, members, from, to }: DomainShares, domain: number): Share[] {
  const at = positionOf(groups.domains, domain);
  const out: Share[] = [];
  for (let i = groups.starts[at]!; i < groups.starts[at + 1]!; i++) {
    if (from[i]! < to[i]!) out.push({ rank: members[i]!, from: from[i]!, to: to[i]! });
  }
  return out;
}
