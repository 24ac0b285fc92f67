// SPDX-License-Identifier: Apache-2.0
// Finds the atoms of a side that meet a region, dimension by dimension, without trying every atom.

import type { DimRuns } from '@nccl-ext/core';
import { endOfRuns, type Geometry, type Region } from './geometry.js';
import type { Atom, Side } from './side.js';

/** What a region shares with the atoms of a side, ascending by atom. */
export interface Cells {
  readonly atoms: readonly Atom[];
  /** Elements of each cell; all positive. */
  readonly elements: readonly number[];
}

/** Cell lists up to this length are kept; longer ones belong to exchanges of all with all, whose lists are rarely used twice. */
const keptCells = 256;

/** The distinct sets of one dimension, sorted by start. */
interface DimIndex {
  readonly sets: readonly DimRuns[];
  readonly start: Float64Array;
  /** Highest end among this set and all before it. */
  readonly reach: Float64Array;
  readonly touching: Map<DimRuns, Touching>;
}

interface Touching {
  /** Positions in `sets`. */
  readonly ids: readonly number[];
  readonly extents: readonly number[];
}

/** Cells of one side. */
export class CellFinder {
  readonly #side: Side;
  readonly #geometry: Geometry;
  readonly #kept = new Map<Region, Cells>();
  #dims: readonly DimIndex[] | undefined;
  /** Atom by position in a row-major grid of set positions; -1 where there is none. Absent when the grid would be sparse. */
  #grid: Int32Array | undefined;
  /** Set position of each atom, per dimension. */
  #positions: readonly Int32Array[] = [];

  constructor(side: Side, geometry: Geometry) {
    this.#side = side;
    this.#geometry = geometry;
  }

  cellsOf(region: Region): Cells {
    const kept = this.#kept.get(region);
    if (kept) return kept;
    const cells = this.#side.atoms.length === 1 ? this.#single(region) : this.#search(region);
    if (cells.atoms.length <= keptCells) this.#kept.set(region, cells);
    return cells;
  }

  #single(region: Region): Cells {
    const atom = this.#side.atoms[0]!;
    const elements = region.dims.reduce(
      (product, dim, d) => product * this.#geometry.overlap(dim, atom.region.dims[d]!).extent,
      1,
    );
    return elements === 0 ? { atoms: [], elements: [] } : { atoms: [atom], elements: [elements] };
  }

  #search(region: Region): Cells {
    this.#dims ??= this.#index();
    const touching = region.dims.map((dim, d) => this.#touching(this.#dims![d]!, dim));
    const found: { index: number; elements: number }[] = [];
    const product = touching.reduce((count, { ids }) => count * ids.length, 1);
    if (this.#grid && product <= this.#side.atoms.length) this.#walkGrid(touching, found);
    else this.#scanAtoms(touching, found);
    if (!found.every(({ index }, i) => i === 0 || found[i - 1]!.index < index)) {
      found.sort((x, y) => x.index - y.index);
    }
    return {
      atoms: found.map(({ index }) => this.#side.atoms[index]!),
      elements: found.map(({ elements }) => elements),
    };
  }

  #walkGrid(touching: readonly Touching[], found: { index: number; elements: number }[]): void {
    const grid = this.#grid!;
    const dims = this.#dims!;
    const visit = (d: number, position: number, elements: number): void => {
      if (d === dims.length) {
        const index = grid[position]!;
        if (index >= 0) found.push({ index, elements });
        return;
      }
      const { ids, extents } = touching[d]!;
      for (let i = 0; i < ids.length; i++) {
        visit(d + 1, position * dims[d]!.sets.length + ids[i]!, elements * extents[i]!);
      }
    };
    visit(0, 0, 1);
  }

  #scanAtoms(touching: readonly Touching[], found: { index: number; elements: number }[]): void {
    const extentOf = touching.map(({ ids, extents }, d) => {
      const table = new Float64Array(this.#dims![d]!.sets.length);
      ids.forEach((id, i) => {
        table[id] = extents[i]!;
      });
      return table;
    });
    for (let index = 0; index < this.#side.atoms.length; index++) {
      let elements = 1;
      for (let d = 0; d < extentOf.length && elements > 0; d++) {
        elements *= extentOf[d]![this.#positions[d]![index]!]!;
      }
      if (elements > 0) found.push({ index, elements });
    }
  }

  #index(): readonly DimIndex[] {
    const { atoms, shape } = this.#side;
    const dims = shape.map((_, d) => {
      const sets = [...new Set(atoms.map(({ region }) => region.dims[d]!))].sort(
        (a, b) => startOf(a) - startOf(b),
      );
      const start = Float64Array.from(sets, startOf);
      const reach = new Float64Array(sets.length);
      let highest = 0;
      sets.forEach((set, i) => {
        highest = Math.max(highest, endOfRuns(set));
        reach[i] = highest;
      });
      return { sets, start, reach, touching: new Map<DimRuns, Touching>() };
    });
    this.#positions = dims.map(({ sets }, d) => {
      const position = new Map(sets.map((set, i) => [set, i]));
      return Int32Array.from(atoms, ({ region }) => position.get(region.dims[d]!)!);
    });
    const size = dims.reduce((product, { sets }) => product * sets.length, 1);
    if (size <= 4 * atoms.length + 64) {
      this.#grid = new Int32Array(size).fill(-1);
      for (let index = 0; index < atoms.length; index++) {
        const at = dims.reduce((sum, { sets }, d) => sum * sets.length + this.#positions[d]![index]!, 0);
        this.#grid[at] = index;
      }
    }
    return dims;
  }

  #touching(index: DimIndex, dim: DimRuns): Touching {
    let touching = index.touching.get(dim);
    if (touching) return touching;
    const ids: number[] = [];
    const extents: number[] = [];
    const from = startOf(dim);
    for (let i = lastBelow(index.start, endOfRuns(dim)); i >= 0 && index.reach[i]! > from; i--) {
      const { extent } = this.#geometry.overlap(dim, index.sets[i]!);
      if (extent === 0) continue;
      ids.push(i);
      extents.push(extent);
    }
    touching = { ids: ids.reverse(), extents: extents.reverse() };
    index.touching.set(dim, touching);
    return touching;
  }
}

function startOf({ runs }: DimRuns): number {
  return runs[0]!.start;
}

/** Position of the last value below `limit`, -1 when there is none. */
function lastBelow(sorted: Float64Array, limit: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
