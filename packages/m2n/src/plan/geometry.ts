// SPDX-License-Identifier: Apache-2.0
// Makes equal geometry one object, so that a model of 10^5 tensors computes each intersection once.

import { type DimRuns, intersectRuns, type RunIntersection } from '@nccl-ext/core';

/** A product of per-dimension sets: what a part covers of the global tensor. Equal regions are one object. */
export interface Region {
  readonly id: number;
  readonly dims: readonly DimRuns[];
  readonly elements: number;
}

/** What two sets of one dimension share. */
export interface Overlap {
  readonly items: readonly RunIntersection[];
  /** Elements. */
  readonly extent: number;
}

/** The objects of one plan. */
export class Geometry {
  readonly #canonical = new Map<DimRuns, DimRuns>();
  readonly #ids = new Map<DimRuns, number>();
  readonly #byText = new Map<string, DimRuns>();
  readonly #byDims = new Map<readonly DimRuns[], Region>();
  readonly #regions = new Map<string, Region>();
  readonly #overlaps = new Map<DimRuns, Map<DimRuns, Overlap>>();

  /** The region that is the product of `dims`. */
  region(dims: readonly DimRuns[]): Region {
    const known = this.#byDims.get(dims);
    if (known) return known;
    const own: DimRuns[] = [];
    let key = '';
    for (const dim of dims) {
      const runs = this.#runs(dim);
      own.push(runs);
      key += `${this.#ids.get(runs)},`;
    }
    let region = this.#regions.get(key);
    if (!region) {
      const elements = own.reduce((product, { extent }) => product * extent, 1);
      region = { id: this.#regions.size, dims: own, elements };
      this.#regions.set(key, region);
    }
    this.#byDims.set(dims, region);
    return region;
  }

  /** Both arguments come from regions of this geometry. */
  overlap(a: DimRuns, b: DimRuns): Overlap {
    let row = this.#overlaps.get(a);
    if (!row) {
      row = new Map();
      this.#overlaps.set(a, row);
    }
    let overlap = row.get(b);
    if (!overlap) {
      const items = intersectRuns(a, b);
      overlap = { items, extent: items.reduce((sum, { length, count }) => sum + length * count, 0) };
      row.set(b, overlap);
    }
    return overlap;
  }

  #runs(dim: DimRuns): DimRuns {
    const known = this.#canonical.get(dim);
    if (known) return known;
    const text = runsText(dim);
    const first = this.#byText.get(text) ?? dim;
    if (first === dim) {
      this.#byText.set(text, dim);
      this.#ids.set(dim, this.#ids.size);
    }
    this.#canonical.set(dim, first);
    return first;
  }
}

const texts = new WeakMap<DimRuns, string>();

/** Canonical JSON of the runs: [start, length, stride, count] each. Local offsets follow, because they are dense. */
export function runsText(dim: DimRuns): string {
  let text = texts.get(dim);
  if (text === undefined) {
    text = JSON.stringify(dim.runs.map(({ start, length, stride, count }) => [start, length, stride, count]));
    texts.set(dim, text);
  }
  return text;
}

/** One past the last element of the last interval; 0 when nothing is held. */
export function endOfRuns({ runs }: DimRuns): number {
  const last = runs.at(-1);
  return last ? last.start + (last.count - 1) * last.stride + last.length : 0;
}
