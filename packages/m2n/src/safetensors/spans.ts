// SPDX-License-Identifier: Apache-2.0
// Lists what a slice of a row-major tensor is in its file: contiguous byte ranges, in the order of the slice.

import type { DimRuns } from '@nccl-ext/core';

/** The contiguous ranges of a slice: range i is `bytes[i % bytes.length]` long. */
export interface Spans {
  /** Byte offsets, from the start of the tensor, that the outer dimensions add; in local order. */
  readonly outer: Float64Array;
  /** Byte offsets and lengths of the ranges within one of `outer`. */
  readonly inner: Float64Array;
  readonly lengths: Float64Array;
}

/** The spans of `runs` in a tensor of `shape` with elements of `elementBytes`. */
export function spansOf(runs: readonly DimRuns[], shape: readonly number[], elementBytes: number): Spans {
  const extents = runs.map((dim) => dim.extent);
  if (extents.includes(0))
    return { outer: new Float64Array(0), inner: new Float64Array(0), lengths: new Float64Array(0) };
  // Dimensions that are held whole make one range with the dimension before them.
  let innermost = shape.length - 1;
  let stride = elementBytes;
  while (innermost > 0 && extents[innermost] === shape[innermost] && isWhole(runs[innermost]!)) {
    stride *= shape[innermost]!;
    innermost--;
  }
  const intervals = innermost < 0 ? [[0, 1] as const] : intervalsOf(runs[innermost]!);
  const inner = Float64Array.from(intervals, ([start]) => start * stride);
  const lengths = Float64Array.from(intervals, ([, length]) => length * stride);
  let outer = new Float64Array(1);
  for (let dim = 0; dim < innermost; dim++) {
    const step = shape.slice(dim + 1).reduce((product, extent) => product * extent, elementBytes);
    outer = crossSum(outer, indicesOf(runs[dim]!, step));
  }
  return { outer, inner, lengths };
}

function isWhole({ runs }: DimRuns): boolean {
  return runs.length === 1 && runs[0]!.start === 0 && runs[0]!.stride === runs[0]!.length;
}

function intervalsOf({ runs }: DimRuns): (readonly [start: number, length: number])[] {
  return runs.flatMap(({ start, length, stride, count }) =>
    Array.from({ length: count }, (_, i) => [start + i * stride, length] as const),
  );
}

/** Every held index of a dimension, in local order, times `step`. */
function indicesOf(dim: DimRuns, step: number): Float64Array {
  const indices = new Float64Array(dim.extent);
  let at = 0;
  for (const [start, length] of intervalsOf(dim)) {
    for (let i = 0; i < length; i++) indices[at++] = (start + i) * step;
  }
  return indices;
}

function crossSum(major: Float64Array, minor: Float64Array): Float64Array<ArrayBuffer> {
  const sums = new Float64Array(major.length * minor.length);
  let at = 0;
  for (const a of major) {
    for (const b of minor) sums[at++] = a + b;
  }
  return sums;
}
