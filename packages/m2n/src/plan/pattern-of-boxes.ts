// SPDX-License-Identifier: Apache-2.0
// Turns explicit boxes, as manifests list them, into a side pattern.

import { type DimRuns, type DType, dimRuns, dtypeBytes, NcclExtError } from '@nccl-ext/core';
import { requireArray, requireObject } from '@nccl-ext/core/extend';
import { type PartInput, type SidePattern, sidePattern } from './side-pattern.js';

/** A box of the global tensor that one rank holds. Units are elements of each dimension. */
export interface HeldBox {
  readonly rank: number;
  readonly start: readonly number[];
  readonly size: readonly number[];
  /** Where its first element lies in the stored tensor; default 0. */
  readonly byteOffset?: number;
  /** Bytes from one element to the next per dimension; default dense and row-major over `size`. */
  readonly byteStrides?: readonly number[];
}

/** What {@link patternOfBoxes} takes. */
export interface BoxesInput {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly boxes: readonly HeldBox[];
}

/**
 * The pattern of these boxes. Boxes of several ranks may be equal or overlap: what they share has several holders.
 * Empty boxes are dropped.
 *
 * @throws ERR_LAYOUT when a box does not fit the shape.
 * @example
 * ```ts
 * patternOfBoxes({
 *   dtype: 'f32',
 *   shape: [4, 4],
 *   boxes: [{ rank: 0, start: [0, 0], size: [4, 2] }, { rank: 1, start: [0, 2], size: [4, 2] }],
 * });
 * ```
 */
export function patternOfBoxes(input: BoxesInput): SidePattern {
  requireObject('input', input, 'ERR_LAYOUT');
  requireArray('shape', input.shape, 'ERR_LAYOUT');
  requireArray('boxes', input.boxes, 'ERR_LAYOUT');
  const { dtype, shape, boxes } = input;
  const intervals = new Map<string, DimRuns>();
  const parts = new Map<string, PartInput & { readonly ranks: number[] }>();
  boxes.forEach((box, i) => {
    requireObject(`boxes[${i}]`, box, 'ERR_LAYOUT');
    requireArray(`boxes[${i}].start`, box.start, 'ERR_LAYOUT');
    requireArray(`boxes[${i}].size`, box.size, 'ERR_LAYOUT');
    requireFit(box, shape, i);
    if (box.size.includes(0)) return;
    const dims = shape.map((_, d) => interval(intervals, box.start[d]!, box.size[d]!));
    const byteStrides = box.byteStrides ?? rowMajor(box.size, dtypeBytes(dtype));
    const byteOffset = box.byteOffset ?? 0;
    const key = [box.start, box.size, byteStrides, byteOffset].join('/');
    const part = parts.get(key);
    if (part) part.ranks.push(box.rank);
    else parts.set(key, { dims, ranks: [box.rank], byteStrides, byteOffset });
  });
  return sidePattern({ dtype, shape, parts: [...parts.values()] });
}

function interval(known: Map<string, DimRuns>, start: number, length: number): DimRuns {
  const key = `${start}+${length}`;
  let runs = known.get(key);
  if (!runs) {
    runs = dimRuns([{ start, length }]);
    known.set(key, runs);
  }
  return runs;
}

function rowMajor(size: readonly number[], elementBytes: number): readonly number[] {
  const strides = new Array<number>(size.length);
  let step = elementBytes;
  for (let d = size.length - 1; d >= 0; d--) {
    strides[d] = step;
    step *= size[d]!;
  }
  return strides;
}

function requireFit(box: HeldBox, shape: readonly number[], index: number): void {
  const { rank, start, size } = box;
  const fits =
    start.length === shape.length &&
    size.length === shape.length &&
    shape.every((extent, d) => {
      const [from, length] = [start[d]!, size[d]!];
      return (
        Number.isInteger(from) &&
        Number.isInteger(length) &&
        from >= 0 &&
        length >= 0 &&
        from + length <= extent
      );
    });
  if (fits) return;
  throw new NcclExtError(
    'ERR_LAYOUT',
    `boxes[${index}] of rank ${rank}: start [${start.join(', ')}] and size [${size.join(', ')}] do not lie in the shape [${shape.join(', ')}]`,
    { field: `boxes[${index}]`, rank },
  );
}
