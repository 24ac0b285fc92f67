// SPDX-License-Identifier: Apache-2.0
// Arithmetic of boxes: whether two meet, and what of one is left when others are taken away.

import type { ManifestBox } from './manifest-schema.js';

export function isEmpty({ size }: ManifestBox): boolean {
  return size.includes(0);
}

/** Whether two boxes of equal rank share an element. */
export function meet(a: ManifestBox, b: ManifestBox): boolean {
  if (isEmpty(a) || isEmpty(b)) return false;
  return a.start.every((start, d) => start < b.start[d]! + b.size[d]! && b.start[d]! < start + a.size[d]!);
}

/** A box of elements of `box` that none of `others` has, or undefined when they cover it. */
export function uncovered(box: ManifestBox, others: readonly ManifestBox[]): ManifestBox | undefined {
  if (isEmpty(box)) return undefined;
  let left: readonly ManifestBox[] = [box];
  for (const other of others) {
    left = left.flatMap((part) => (meet(part, other) ? subtract(part, other) : [part]));
    if (left.length === 0) return undefined;
  }
  return left[0];
}

/** What is left of `a`, as disjoint boxes: per dimension what lies before and behind `b` in what is not yet cut off. */
function subtract(a: ManifestBox, b: ManifestBox): ManifestBox[] {
  const start = [...a.start];
  const size = [...a.size];
  const left: ManifestBox[] = [];
  for (let d = 0; d < start.length; d++) {
    const end = start[d]! + size[d]!;
    const [from, to] = [Math.max(start[d]!, b.start[d]!), Math.min(end, b.start[d]! + b.size[d]!)];
    if (start[d]! < from) left.push({ start: [...start], size: size.with(d, from - start[d]!) });
    if (to < end) left.push({ start: start.with(d, to), size: size.with(d, end - to) });
    start[d] = from;
    size[d] = to - from;
  }
  return left;
}

/** As in Python: `[0:4, 2:8]`. */
export function describeBox({ start, size }: ManifestBox): string {
  return `[${start.map((from, d) => `${from}:${from + size[d]!}`).join(', ')}]`;
}
