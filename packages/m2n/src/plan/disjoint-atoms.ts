// SPDX-License-Identifier: Apache-2.0
// Cuts parts that overlap (replicated KV heads, manifests) until every element belongs to exactly one piece with a known set of holders.

import { type DimRuns, dimRuns, firstUncovered, globalToLocal, NcclExtError } from '@nccl-ext/core';
import { endOfRuns, type Geometry, type Region } from './geometry.js';

/** Where someone keeps a part. */
export interface Held {
  readonly byteOffset: number;
  readonly byteStrides: readonly number[];
}

/** A region and who holds it. */
export interface AtomDraft<M extends Held> {
  readonly region: Region;
  readonly members: readonly M[];
}

/** Beyond this the sides are too irregular to be planned in reasonable time. */
const maxPieces = 2 ** 16;

/** `drafts` have different regions. Those that overlap no other stay as they are, in their order; pieces of the others follow. */
export function disjointAtoms<M extends Held>(
  drafts: readonly AtomDraft<M>[],
  shape: readonly number[],
  geometry: Geometry,
): readonly AtomDraft<M>[] {
  if (drafts.length < 2 || isProductOfDisjointSets(drafts, shape, geometry)) return drafts;
  const groups = overlapGroups(drafts, geometry);
  if (groups.length === drafts.length) return drafts;
  return [
    ...groups.filter((group) => group.length === 1).map(([draft]) => draft!),
    ...groups.filter((group) => group.length > 1).flatMap((group) => refine(group, geometry)),
  ];
}

/** When the sets of every dimension are pairwise disjoint, so are different products of them. */
function isProductOfDisjointSets(
  drafts: readonly AtomDraft<Held>[],
  shape: readonly number[],
  geometry: Geometry,
): boolean {
  return shape.every((extent, d) => {
    const sets = [...new Set(drafts.map(({ region }) => region.dims[d]!))];
    if (sets.length === 1) return true;
    const total = sets.reduce((sum, set) => sum + set.extent, 0);
    if (total > extent) return false;
    if (total === extent && firstUncovered(sets, extent) === undefined) return true;
    return eachBoundingPair(sets, (a, b) => geometry.overlap(a, b).extent === 0);
  });
}

/** Calls `test` for pairs whose bounds meet, until one fails. */
function eachBoundingPair(sets: readonly DimRuns[], test: (a: DimRuns, b: DimRuns) => boolean): boolean {
  const sorted = sets.toSorted((a, b) => firstOf(a) - firstOf(b));
  let open: DimRuns[] = [];
  for (const set of sorted) {
    open = open.filter((other) => endOfRuns(other) > firstOf(set));
    if (!open.every((other) => test(other, set))) return false;
    open.push(set);
  }
  return true;
}

function overlapGroups<M extends Held>(
  drafts: readonly AtomDraft<M>[],
  geometry: Geometry,
): AtomDraft<M>[][] {
  const parent = drafts.map((_, i) => i);
  const root = (i: number): number => {
    while (parent[i] !== i) {
      parent[i] = parent[parent[i]!]!;
      i = parent[i]!;
    }
    return i;
  };
  const order = drafts
    .map((_, i) => i)
    .sort((x, y) => firstOf(drafts[x]!.region.dims[0]!) - firstOf(drafts[y]!.region.dims[0]!));
  let open: number[] = [];
  for (const i of order) {
    const { dims } = drafts[i]!.region;
    open = open.filter((j) => endOfRuns(drafts[j]!.region.dims[0]!) > firstOf(dims[0]!));
    for (const j of open) {
      if (root(i) !== root(j) && meet(dims, drafts[j]!.region.dims, geometry)) parent[root(i)] = root(j);
    }
    open.push(i);
  }
  const groups = new Map<number, AtomDraft<M>[]>();
  drafts.forEach((draft, i) => {
    const group = groups.get(root(i));
    if (group) group.push(draft);
    else groups.set(root(i), [draft]);
  });
  return [...groups.values()];
}

function meet(a: readonly DimRuns[], b: readonly DimRuns[], geometry: Geometry): boolean {
  return (
    a.every((dim, d) => firstOf(dim) < endOfRuns(b[d]!) && firstOf(b[d]!) < endOfRuns(dim)) &&
    a.every((dim, d) => geometry.overlap(dim, b[d]!).extent > 0)
  );
}

/** An interval of one dimension that lies wholly inside or outside of each draft, with the drafts that have it. */
interface Slab {
  readonly runs: DimRuns;
  readonly start: number;
  readonly owners: readonly number[];
}

/** All boxes between neighbouring boundaries. A box is contiguous in the storage of each holder, per dimension. */
function refine<M extends Held>(group: readonly AtomDraft<M>[], geometry: Geometry): AtomDraft<M>[] {
  const dims = group[0]!.region.dims.map((_, d) => slabs(group.map(({ region }) => region.dims[d]!)));
  const out: AtomDraft<M>[] = [];
  const box: Slab[] = [];
  const visit = (d: number, owners: readonly number[]): void => {
    if (d === dims.length) {
      requireFew(out.length + 1);
      out.push({
        region: geometry.region(box.map(({ runs }) => runs)),
        members: owners.flatMap((owner) =>
          group[owner]!.members.map((member) => inside(member, group[owner]!, box)),
        ),
      });
      return;
    }
    for (const slab of dims[d]!) {
      const both = owners.filter((owner) => slab.owners.includes(owner));
      if (both.length === 0) continue;
      box[d] = slab;
      visit(d + 1, both);
    }
  };
  visit(
    0,
    group.map((_, i) => i),
  );
  return out;
}

function inside<M extends Held>(member: M, { region }: AtomDraft<M>, box: readonly Slab[]): M {
  const byteOffset = box.reduce(
    (sum, { start }, d) => sum + globalToLocal(region.dims[d]!, start)! * member.byteStrides[d]!,
    member.byteOffset,
  );
  return { ...member, byteOffset };
}

function slabs(sets: readonly DimRuns[]): Slab[] {
  const bounds = new Set<number>();
  for (const { runs } of sets) {
    for (const { start, length, stride, count } of runs) {
      requireFew(bounds.size / 2 + count);
      for (let i = 0; i < count; i++) bounds.add(start + i * stride).add(start + i * stride + length);
    }
  }
  const sorted = [...bounds].sort((x, y) => x - y);
  const out: Slab[] = [];
  for (let i = 1; i < sorted.length; i++) {
    const start = sorted[i - 1]!;
    const owners = sets.flatMap((set, owner) => (globalToLocal(set, start) === undefined ? [] : [owner]));
    if (owners.length > 0)
      out.push({ runs: dimRuns([{ start, length: sorted[i]! - start }]), start, owners });
  }
  return out;
}

function requireFew(pieces: number): void {
  if (pieces <= maxPieces) return;
  throw new NcclExtError('ERR_LAYOUT', `parts of one side overlap in more than ${maxPieces} pieces`, {
    help: 'Let overlapping parts have the same boundaries, or describe the copies as separate tensors.',
    field: 'parts',
  });
}

function firstOf({ runs }: DimRuns): number {
  return runs[0]?.start ?? 0;
}
