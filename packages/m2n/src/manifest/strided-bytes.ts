// SPDX-License-Identifier: Apache-2.0
// Answers which bytes a strided tensor occupies, and whether two tensors share any.

/** A tensor in an allocation. */
export interface StridedTensor {
  readonly offset: number;
  readonly shape: readonly number[];
  /** In bytes. */
  readonly strides: readonly number[];
  readonly elementBytes: number;
}

/** One past the last byte; `offset` itself for an empty tensor. */
export function endOf({ offset, shape, strides, elementBytes }: StridedTensor): number {
  if (shape.includes(0)) return offset;
  return shape.reduce((end, extent, dim) => end + (extent - 1) * strides[dim]!, offset + elementBytes);
}

/** Whether no two elements share a byte: each stride steps over all that smaller strides reach. */
export function isInjective({ shape, strides, elementBytes }: StridedTensor): boolean {
  const steps = shape
    .map((extent, dim) => ({ extent, stride: strides[dim]! }))
    .filter(({ extent }) => extent > 1)
    .sort((a, b) => a.stride - b.stride);
  let reach = elementBytes;
  for (const { extent, stride } of steps) {
    if (stride < reach) return false;
    reach += (extent - 1) * stride;
  }
  return true;
}

/** Whether two injective tensors share a byte. */
export function overlaps(a: StridedTensor, b: StridedTensor): boolean {
  const [endA, endB] = [endOf(a), endOf(b)];
  if (endA <= b.offset || endB <= a.offset || endA === a.offset || endB === b.offset) return false;
  const [first, second] = [runsOf(a), runsOf(b)];
  let [i, j] = [0, 0];
  while (i < first.starts.length && j < second.starts.length) {
    const [startA, startB] = [first.starts[i]!, second.starts[j]!];
    if (startA + first.length <= startB) i++;
    else if (startB + second.length <= startA) j++;
    else return true;
  }
  return false;
}

/** The contiguous runs of a tensor, ascending; all are `length` bytes. */
function runsOf({ offset, shape, strides, elementBytes }: StridedTensor): {
  starts: Float64Array;
  length: number;
} {
  const steps = shape
    .map((extent, dim) => ({ extent, stride: strides[dim]! }))
    .filter(({ extent }) => extent > 1)
    .sort((x, y) => x.stride - y.stride);
  let length = elementBytes;
  while (steps[0]?.stride === length) length *= steps.shift()!.extent;
  let starts = Float64Array.of(offset);
  // The largest stride outermost keeps the starts ascending.
  for (const { extent, stride } of steps.reverse()) {
    const next = new Float64Array(starts.length * extent);
    for (const [i, start] of starts.entries()) {
      for (let k = 0; k < extent; k++) next[i * extent + k] = start + k * stride;
    }
    starts = next;
  }
  return { starts, length };
}

/** The strides, in bytes, of a dense row-major tensor. */
export function rowMajor(shape: readonly number[], elementBytes: number): readonly number[] {
  const strides = new Array<number>(shape.length);
  let step = elementBytes;
  for (let d = shape.length - 1; d >= 0; d--) {
    strides[d] = step;
    step *= shape[d]!;
  }
  return strides;
}
