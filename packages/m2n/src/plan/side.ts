// SPDX-License-Identifier: Apache-2.0
// One side of a tensor brought into the form that planning needs: disjoint atoms, each with everyone who holds it.

import { type DType, dtypeBytes } from '@nccl-ext/core';
import { CellFinder, type Cells } from './cells.js';
import { type AtomDraft, disjointAtoms, type Held } from './disjoint-atoms.js';
import type { Geometry, Region } from './geometry.js';
import type { SideCopy } from './plan-request.js';
import type { Part } from './side-pattern.js';

/** Ranks that hold an atom at the same place of the same storage. */
export interface Member extends Held {
  /** Ascending. */
  readonly ranks: Int32Array;
  readonly byteOffset: number;
  readonly byteStrides: readonly number[];
  /** Index of the copy in the request. */
  readonly copy: number;
}

/** A region that has one set of holders. Atoms of a side are disjoint. */
export interface Atom {
  readonly index: number;
  readonly region: Region;
  /** A rank in several members keeps the atom in several places; the first one is where it receives. */
  readonly members: readonly Member[];
  /** All holders, ascending. */
  readonly ranks: Int32Array;
}

const none: readonly Atom[] = [];

export class Side {
  readonly dtype: DType;
  readonly elementBytes: number;
  readonly shape: readonly number[];
  readonly copies: readonly SideCopy[];
  readonly atoms: readonly Atom[];
  /** Elements of the global tensor that somebody holds. */
  readonly elements: number;
  /** Every element of the global tensor is held. */
  readonly complete: boolean;
  /** Most storages that one rank has for the tensor. */
  readonly slots: number;
  readonly #geometry: Geometry;
  #finder: CellFinder | undefined;
  #ranks: Int32Array | undefined;
  #atomsOf: Map<number, Atom[]> | undefined;
  readonly #slotOf: Map<string, number> | undefined;

  constructor(copies: readonly SideCopy[], geometry: Geometry) {
    const { dtype, shape } = copies[0]!.pattern;
    this.dtype = dtype;
    this.elementBytes = dtypeBytes(dtype);
    this.shape = shape;
    this.copies = copies;
    this.#geometry = geometry;
    this.atoms = atomsOf(copies, geometry);
    let elements = 0;
    for (const { region } of this.atoms) elements += region.elements;
    this.elements = elements;
    this.complete = elements === shape.reduce((product, extent) => product * extent, 1);
    if (copies.length === 1) {
      this.slots = 1;
    } else {
      const { table, slots } = slotTable(copies);
      this.#slotOf = table;
      this.slots = slots;
    }
  }

  has(rank: number): boolean {
    this.#ranks ??=
      this.atoms.length === 1 ? this.atoms[0]!.ranks : union(this.atoms.map(({ ranks }) => ranks));
    return includes(this.#ranks, rank);
  }

  /** Atoms that a rank holds, ascending by index. */
  atomsOf(rank: number): readonly Atom[] {
    if (!this.has(rank)) return none;
    if (this.atoms.length === 1) return this.atoms;
    if (this.atoms.length <= scannedAtoms) return this.atoms.filter(({ ranks }) => includes(ranks, rank));
    this.#atomsOf ??= atomIndex(this.atoms);
    return this.#atomsOf.get(rank)!;
  }

  /** What the atoms of this side share with a region. */
  cellsOf(region: Region): Cells {
    this.#finder ??= new CellFinder(this, this.#geometry);
    return this.#finder.cellsOf(region);
  }

  /** Number of the storage in which `member` keeps its part on `rank`: 0 unless the rank has several. */
  slotOf(member: Pick<Member, 'copy'>, rank: number): number {
    return this.#slotOf?.get(`${member.copy}/${rank}`) ?? 0;
  }
}

/** Sides with more atoms have an index by rank. */
const scannedAtoms = 64;

function atomIndex(atoms: readonly Atom[]): Map<number, Atom[]> {
  const index = new Map<number, Atom[]>();
  for (const atom of atoms) {
    for (const rank of atom.ranks) {
      const list = index.get(rank);
      if (list) list.push(atom);
      else index.set(rank, [atom]);
    }
  }
  return index;
}

/** All ranks of the lists, ascending, each once. */
function union(lists: readonly Int32Array[]): Int32Array {
  const all = new Int32Array(lists.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const list of lists) {
    all.set(list, at);
    at += list.length;
  }
  all.sort();
  let distinct = 0;
  for (let i = 0; i < all.length; i++) {
    if (i === 0 || all[i] !== all[i - 1]) all[distinct++] = all[i]!;
  }
  return all.subarray(0, distinct);
}

/** Where a rank that holds the atom reads it from and receives it. */
export function primaryMember(atom: Atom, rank: number): Member {
  if (atom.members.length === 1) return atom.members[0]!;
  return atom.members.find(({ ranks }) => includes(ranks, rank))!;
}

/** All places where a rank keeps the atom, the primary first. */
export function membersOf(atom: Atom, rank: number): readonly Member[] {
  if (atom.members.length === 1) return atom.members;
  return atom.members.filter(({ ranks }) => includes(ranks, rank));
}

/** The ranks that are not among others; both ascending. The same object when none is. */
export function without(ranks: Int32Array, others: Int32Array): Int32Array {
  const [few, many] = ranks.length < others.length ? [ranks, others] : [others, ranks];
  for (let i = 0; i < few.length; i++) {
    if (includes(many, few[i]!)) return ranks.filter((rank) => !includes(others, rank));
  }
  return ranks;
}

/** Whether an ascending list has the value. */
export function includes(sorted: Int32Array, value: number): boolean {
  // Mostly the two sides of a transfer are apart.
  if (sorted.length === 0 || value < sorted[0]! || value > sorted[sorted.length - 1]!) return false;
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return sorted[low] === value;
}

function atomsOf(copies: readonly SideCopy[], geometry: Geometry): readonly Atom[] {
  const { shape, parts } = copies[0]!.pattern;
  if (copies.length === 1 && parts.length === 1) {
    const { ranks } = parts[0]!;
    const region = geometry.region(parts[0]!.dims);
    return region.elements === 0
      ? none
      : [{ index: 0, region, members: [memberOf(parts[0]!, ranks, 0)], ranks }];
  }
  return disjointAtoms(drafts(copies, geometry), shape, geometry).map(closeAtom);
}

function drafts(copies: readonly SideCopy[], geometry: Geometry): AtomDraft<Member>[] {
  const byRegion = new Map<Region, Member[]>();
  copies.forEach(({ pattern }, copy) => {
    for (const part of pattern.parts) {
      const region = geometry.region(part.dims);
      if (region.elements === 0) continue;
      const members = byRegion.get(region);
      const ranks = members ? withoutAliases(part, copy, members, copies) : part.ranks;
      if (ranks.length === 0) continue;
      const member = memberOf(part, ranks, copy);
      if (members) members.push(member);
      else byRegion.set(region, [member]);
    }
  });
  return [...byRegion].map(([region, members]) => ({ region, members }));
}

function memberOf({ byteOffset, byteStrides }: Part, ranks: Int32Array, copy: number): Member {
  return { ranks, byteOffset, byteStrides, copy };
}

/** A rank that names the same place twice holds it once. */
function withoutAliases(
  part: Part,
  copy: number,
  members: readonly Member[],
  copies: readonly SideCopy[],
): Int32Array {
  const { storage } = copies[copy]!;
  const twins = members.filter(
    (member) =>
      copies[member.copy]!.storage === storage &&
      member.byteOffset === part.byteOffset &&
      member.byteStrides.every((stride, d) => stride === part.byteStrides[d]),
  );
  if (twins.length === 0) return part.ranks;
  return twins.reduce((ranks, twin) => without(ranks, twin.ranks), part.ranks);
}

function closeAtom({ region, members }: AtomDraft<Member>, index: number): Atom {
  const ranks = members.length === 1 ? members[0]!.ranks : union(members.map((member) => member.ranks));
  return { index, region, members, ranks };
}

function slotTable(copies: readonly SideCopy[]): { table: Map<string, number>; slots: number } {
  const storages = new Map<number, string[]>();
  const table = new Map<string, number>();
  let slots = 1;
  copies.forEach(({ pattern, storage }, copy) => {
    for (const { ranks } of pattern.parts) {
      for (const rank of ranks) {
        const held = storages.get(rank) ?? [];
        storages.set(rank, held);
        let slot = held.indexOf(storage);
        if (slot < 0) slot = held.push(storage) - 1;
        table.set(`${copy}/${rank}`, slot);
        slots = Math.max(slots, held.length);
      }
    }
  });
  return { table, slots };
}
