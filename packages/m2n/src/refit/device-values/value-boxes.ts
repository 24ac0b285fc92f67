// SPDX-License-Identifier: Apache-2.0
// What a rank holds of a tensor, as boxes that a kernel walks: dense runs, repeated over at most three loops.

import { type DimRuns, type DType, dtypeBytes } from '@nccl-ext/core';
import type { Part } from '../../plan/side-pattern.js';

/** Outer loops of a box, as in native/values/shared/value_box.hpp. */
export const boxLoops = 3;

/** A step that is repeated: `local` bytes on in the memory, `element` elements on in the tensor. */
export interface BoxLoop {
  readonly count: number;
  readonly local: number;
  readonly element: number;
}

export interface ValueBox {
  /** Byte of the storage at which the first element lies. */
  readonly local: number;
  /** Row-major index of the first element in the tensor. */
  readonly element: number;
  /** Elements of a run. */
  readonly inner: number;
  /** Outermost first, at most {@link boxLoops}. */
  readonly loops: readonly BoxLoop[];
}

/** The boxes of `part`, which is of a tensor of this shape; none when it is empty. */
export function valueBoxes(part: Part, shape: readonly number[], dtype: DType): readonly ValueBox[] {
  if (part.dims.some(({ extent }) => extent === 0)) return [];
  const places = part.dims.map((dim, d) => placesOf(dim, part.byteStrides[d]!, elementsAfter(shape, d)));
  let starts: readonly Start[] = [{ local: part.byteOffset, element: 0, loops: [] }];
  for (const choices of places)
    starts = starts.flatMap((start) => choices.map((choice) => followed(start, choice)));
  return starts.flatMap((start) => boxesOf(start, dtypeBytes(dtype)));
}

/** A first element and what is repeated from there, outermost first. */
interface Start {
  readonly local: number;
  readonly element: number;
  readonly loops: readonly BoxLoop[];
}

/** Per run of a dimension: where it starts, its repetitions, its elements. */
function placesOf({ runs }: DimRuns, byteStride: number, elementStride: number): readonly Start[] {
  return runs.map(({ start, length, stride, count, local }) => ({
    local: local * byteStride,
    element: start * elementStride,
    loops: [
      { count, local: length * byteStride, element: stride * elementStride },
      { count: length, local: byteStride, element: elementStride },
    ],
  }));
}

function followed(outer: Start, inner: Start): Start {
  return {
    local: outer.local + inner.local,
    element: outer.element + inner.element,
    loops: [...outer.loops, ...inner.loops],
  };
}

function elementsAfter(shape: readonly number[], d: number): number {
  return shape.slice(d + 1).reduce((product, extent) => product * extent, 1);
}

function boxesOf({ local, element, loops }: Start, bytes: number): readonly ValueBox[] {
  const merged = merge(loops);
  const last = merged.at(-1);
  const dense = last !== undefined && last.element === 1 && last.local === bytes;
  const outer = dense ? merged.slice(0, -1) : merged;
  return unroll({ local, element, loops: outer }, dense ? last.count : 1);
}

/** Without loops of one round; neighbours that step as one loop would are one. */
function merge(loops: readonly BoxLoop[]): readonly BoxLoop[] {
  const merged: BoxLoop[] = [];
  for (const loop of loops.toReversed()) {
    if (loop.count === 1) continue;
    const inner = merged.at(-1);
    const goesOn =
      inner !== undefined &&
      loop.local === inner.count * inner.local &&
      loop.element === inner.count * inner.element;
    if (goesOn) merged[merged.length - 1] = { ...inner, count: inner.count * loop.count };
    else merged.push(loop);
  }
  return merged.toReversed();
}

/** More loops than a box has become boxes of their own. */
function unroll({ local, element, loops }: Start, inner: number): readonly ValueBox[] {
  if (loops.length <= boxLoops) return [{ local, element, inner, loops }];
  const [outermost, ...rest] = loops as [BoxLoop, ...BoxLoop[]];
  return Array.from({ length: outermost.count }, (_, k) => ({
    local: local + k * outermost.local,
    element: element + k * outermost.element,
    loops: rest,
  })).flatMap((start) => unroll(start, inner));
}
