// SPDX-License-Identifier: Apache-2.0
// What each coordinate of a grid of ranks has of a parameter, apart from rank numbers, and the patterns made from it.

import { type DimRuns, type DType, dimRuns } from '@nccl-ext/core';
import { type PartInput, type SidePattern, sidePattern } from '../plan/side-pattern.js';
import type { Share } from './cut-dimension.js';

/** What coordinates that hold the same hold, and where in their storage. */
interface Cell {
  readonly dims: readonly DimRuns[];
  readonly byteOffset: number;
  readonly coordinates: readonly number[];
}

interface GeometryInput {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** What one coordinate holds, per dimension. */
  readonly held: readonly (readonly DimRuns[])[];
  /** Where that begins in the storage of the coordinate. */
  readonly byteOffsets: readonly number[];
}

/** Equal for all parameters that lie the same way. */
export class Geometry {
  readonly #dtype: DType;
  readonly #shape: readonly number[];
  readonly #cells: readonly Cell[];
  readonly #patterns: Map<number, SidePattern> = new Map();

  constructor(input: GeometryInput, cells: readonly Cell[]) {
    this.#dtype = input.dtype;
    this.#shape = input.shape;
    this.#cells = cells;
  }

  /** The pattern that was made for this place, a number that stands for its ranks. */
  patternAt(place: number): SidePattern | undefined {
    return this.#patterns.get(place);
  }

  /** Makes the pattern for a place, on the ranks that `ranksAt` gives for a coordinate. */
  makePattern(place: number, ranksAt: (coordinate: number) => readonly number[]): SidePattern {
    const parts = this.#cells.map(({ dims, byteOffset, coordinates }): PartInput => {
      const ranks = coordinates.length === 1 ? ranksAt(coordinates[0]!) : coordinates.flatMap(ranksAt);
      return { dims, byteOffset, ranks };
    });
    const pattern = sidePattern({ dtype: this.#dtype, shape: this.#shape, parts });
    this.#patterns.set(place, pattern);
    return pattern;
  }
}

/** Gives equal content the same object: the planner recognises objects faster than content. */
export class Interner {
  readonly #runs: Map<string, DimRuns>;
  readonly #geometries: Map<string, Geometry> = new Map();

  /** `other` shares its runs, not its geometries, whose patterns belong to one side. */
  constructor(other?: Interner) {
    this.#runs = other === undefined ? new Map() : other.#runs;
  }

  /** The runs of a share. */
  runs(share: Share): DimRuns {
    const key = share.join(';');
    let runs = this.#runs.get(key);
    if (runs === undefined) {
      runs = dimRuns(share.map(([start, end]) => ({ start, length: end - start })));
      this.#runs.set(key, runs);
    }
    return runs;
  }

  /** The geometry of these coordinates; those that hold nothing are left out. */
  geometry(input: GeometryInput): Geometry {
    const cells = new Map<string, { dims: readonly DimRuns[]; byteOffset: number; coordinates: number[] }>();
    for (const [coordinate, dims] of input.held.entries()) {
      if (dims.some(({ extent }) => extent === 0)) continue;
      const byteOffset = input.byteOffsets[coordinate]!;
      const key = `${dims.map((dim) => this.#idOf(dim)).join()}@${byteOffset}`;
      const cell = cells.get(key);
      if (cell === undefined) cells.set(key, { dims, byteOffset, coordinates: [coordinate] });
      else cell.coordinates.push(coordinate);
    }
    const content = Array.from(cells, ([key, { coordinates }]) => `${key}:${coordinates}`).join('/');
    const key = `${input.dtype}[${input.shape}]${content}`;
    let geometry = this.#geometries.get(key);
    if (geometry === undefined) {
      geometry = new Geometry(input, [...cells.values()]);
      this.#geometries.set(key, geometry);
    }
    return geometry;
  }

  readonly #ids: Map<DimRuns, number> = new Map();

  #idOf(runs: DimRuns): number {
    let id = this.#ids.get(runs);
    if (id === undefined) {
      id = this.#ids.size;
      this.#ids.set(runs, id);
    }
    return id;
  }
}
