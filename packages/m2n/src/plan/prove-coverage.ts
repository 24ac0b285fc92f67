// SPDX-License-Identifier: Apache-2.0
// Proves that every element that somebody wants has a source, and names the first box of elements that has none.

import { type DimRuns, globalToLocal, intersectRuns, NcclExtError } from '@nccl-ext/core';
import type { Atom, Side } from './side.js';

/** Atoms are disjoint, so equal volumes prove it. @throws ERR_COVERAGE */
export function proveCoverage(name: string, source: Side, destination: Side): void {
  if (source.complete) return;
  for (const wanted of destination.atoms) {
    const { atoms, elements } = source.cellsOf(wanted.region);
    if (elements.reduce((sum, cell) => sum + cell, 0) === wanted.region.elements) continue;
    const hole = firstHole(wanted.region.dims, atoms, 0);
    throw new NcclExtError(
      'ERR_COVERAGE',
      `${name}${hole.map(([from, to]) => `[${from}:${to}]`).join('')} has no source, but rank ${wanted.ranks[0]} wants it.`,
      {
        field: name,
        rank: wanted.ranks[0]!,
        seen: hole,
        help: `Let a source rank hold it. The sources hold ${source.elements} of ${source.shape.join(' x ') || 1} elements.`,
      },
    );
  }
}

/** First interval per dimension, in row-major order, of a product of sets that `atoms` do not cover. */
function firstHole(
  dims: readonly DimRuns[],
  atoms: readonly Atom[],
  d: number,
): (readonly [number, number])[] {
  const dim = dims[d];
  if (!dim) return [];
  for (const [from, to] of elementaryIntervals(dim, atoms, d)) {
    const here = atoms.filter(({ region }) => globalToLocal(region.dims[d]!, from) !== undefined);
    const rest = dims.slice(d + 1);
    const volume = (product: number, set: DimRuns, i: number, other: readonly DimRuns[]): number =>
      product * sharedExtent(set, other[d + 1 + i]!);
    const covered = here.reduce(
      (sum, { region }) => sum + rest.reduce((product, set, i) => volume(product, set, i, region.dims), 1),
      0,
    );
    if (covered === rest.reduce((product, { extent }) => product * extent, 1)) continue;
    return [[from, to], ...firstHole(dims, here, d + 1)];
  }
  return [];
}

function sharedExtent(a: DimRuns, b: DimRuns): number {
  return intersectRuns(a, b).reduce((sum, { length, count }) => sum + length * count, 0);
}

/** Intervals of `dim` in which no atom begins or ends, ascending. */
function* elementaryIntervals(
  dim: DimRuns,
  atoms: readonly Atom[],
  d: number,
): Generator<readonly [number, number]> {
  const bounds = new Set<number>();
  for (const { runs } of [dim, ...atoms.map(({ region }) => region.dims[d]!)]) {
    for (const { start, length, stride, count } of runs) {
      for (let i = 0; i < count; i++) bounds.add(start + i * stride).add(start + i * stride + length);
    }
  }
  const sorted = [...bounds].sort((x, y) => x - y);
  for (let i = 1; i < sorted.length; i++) {
    if (globalToLocal(dim, sorted[i - 1]!) !== undefined) yield [sorted[i - 1]!, sorted[i]!];
  }
}
