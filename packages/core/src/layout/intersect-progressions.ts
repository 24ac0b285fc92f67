// SPDX-License-Identifier: Apache-2.0
// Intersects two progressions of intervals without listing them: common blocks of two periodic patterns are again progressions.

import type { RunIntersection } from './intersect-runs.js';

/** Equal intervals [start + i*stride, + length), i in [0, count), that carry values: x elements into interval i is value + i*valueStride + x. */
export interface Progression {
  readonly start: number;
  readonly length: number;
  readonly stride: number;
  readonly count: number;
  readonly value: number;
  readonly valueStride: number;
}

/**
 * Appends what a and b share to `out`; `aLocal` and `bLocal` are their values. Costs at most one step per interval of
 * the side that has fewer of them where the two meet, and only a step per distinct offset where that is less.
 * With `ordered`, items never interleave; otherwise several periodic items may.
 */
export function intersectProgressions(
  a: Progression,
  b: Progression,
  ordered: boolean,
  out: RunIntersection[],
): void {
  const [aFirst, aLast] = indicesWithin(a, b.start, endOf(b));
  const [bFirst, bLast] = indicesWithin(b, a.start, endOf(a));
  const fewer = Math.min(aLast - aFirst, bLast - bFirst) + 1;
  if (fewer <= 0) return;
  if (fewer > 1) {
    const offsets = offsetsBetween(a, b);
    if (offsets.count < (ordered ? 2 : fewer)) {
      intersectPeriodic(a, b, offsets, out);
      return;
    }
  }
  if (aLast - aFirst <= bLast - bFirst) {
    for (let i = aFirst; i <= aLast; i++) clip(a, i, b, (piece) => out.push(piece), false);
  } else {
    for (let j = bFirst; j <= bLast; j++) clip(b, j, a, (piece) => out.push(piece), true);
  }
}

/** How many items {@link intersectProgressions} may add when `ordered`, at most; 1 where the patterns keep step. */
export function orderedCost(a: Progression, b: Progression): number {
  const [aFirst, aLast] = indicesWithin(a, b.start, endOf(b));
  const [bFirst, bLast] = indicesWithin(b, a.start, endOf(a));
  const fewer = Math.min(aLast - aFirst, bLast - bFirst) + 1;
  return fewer > 1 && offsetsBetween(a, b).count < 2 ? 1 : 3 * Math.max(0, fewer);
}

/** One past the last element of the last interval. */
export function endOf(run: { start: number; length: number; stride: number; count: number }): number {
  return run.start + (run.count - 1) * run.stride + run.length;
}

/** First and last index of the intervals that meet [from, to); last < first when there is none. */
function indicesWithin(p: Progression, from: number, to: number): readonly [first: number, last: number] {
  return [
    Math.max(0, Math.floor((from - p.start - p.length) / p.stride) + 1),
    Math.min(p.count - 1, Math.floor((to - 1 - p.start) / p.stride)),
  ];
}

/** Interval `index` of `coarse` against all of `fine`: a cut first interval, whole ones, a cut last one. */
function clip(
  coarse: Progression,
  index: number,
  fine: Progression,
  push: (piece: RunIntersection) => void,
  swapped: boolean,
): void {
  const from = coarse.start + index * coarse.stride;
  const to = from + coarse.length;
  let [first, last] = indicesWithin(fine, from, to);
  const emit = (start: number, length: number, i: number, count: number): void => {
    const stride = count === 1 ? length : fine.stride;
    // Inside one coarse interval its values advance with the global position.
    const coarseValue = coarse.value + index * coarse.valueStride + (start - from);
    const fineValue = fine.value + i * fine.valueStride + (start - fine.start - i * fine.stride);
    const fineStride = count === 1 ? length : fine.valueStride;
    push(
      swapped
        ? {
            start,
            length,
            count,
            stride,
            aLocal: fineValue,
            aStride: fineStride,
            bLocal: coarseValue,
            bStride: stride,
          }
        : {
            start,
            length,
            count,
            stride,
            aLocal: coarseValue,
            aStride: stride,
            bLocal: fineValue,
            bStride: fineStride,
          },
    );
  };
  if (first > last) return;
  const head = fine.start + first * fine.stride;
  if (head < from || head + fine.length > to) {
    const start = Math.max(head, from);
    emit(start, Math.min(head + fine.length, to) - start, first, 1);
    first++;
  }
  if (first > last) return;
  const tail = fine.start + last * fine.stride;
  const cut = tail + fine.length > to;
  if (cut) last--;
  if (first <= last) emit(fine.start + first * fine.stride, fine.length, first, last - first + 1);
  if (cut) emit(tail, to - tail, last + 1, 1);
}

/** The offsets D = a_i - b_j at which interval i of a can meet interval j of b: least, and how many steps of `gcd` follow. */
interface Offsets {
  readonly gcd: number;
  readonly least: number;
  readonly count: number;
}

function offsetsBetween(a: Progression, b: Progression): Offsets {
  const gcd = greatestCommonDivisor(a.stride, b.stride);
  // They meet when -a.length < D < b.length, and D is a.start - b.start modulo gcd.
  const residue = modulo(a.start - b.start, gcd);
  const least = residue - gcd * Math.floor((residue + a.length - 1) / gcd);
  return { gcd, least, count: Math.max(0, Math.floor((b.length - 1 - least) / gcd) + 1) };
}

/** For each offset the pairs (i, j) with a_i - b_j = D repeat every (b.stride, a.stride) / gcd: one item each. */
function intersectPeriodic(a: Progression, b: Progression, offsets: Offsets, out: RunIntersection[]): void {
  const { gcd } = offsets;
  const aPeriod = b.stride / gcd;
  const bPeriod = a.stride / gcd;
  const inverse = inverseModulo(modulo(bPeriod, aPeriod), aPeriod);
  for (let n = 0; n < offsets.count; n++) {
    const d = offsets.least + n * gcd;
    const rise = b.start + d - a.start; // a.stride * i = rise + b.stride * j
    const residue = multiplyModulo(modulo(rise / gcd, aPeriod), inverse, aPeriod);
    const least = Math.max(0, Math.ceil(rise / a.stride));
    const most = Math.min(a.count - 1, Math.floor((rise + (b.count - 1) * b.stride) / a.stride));
    const i = residue + Math.ceil((least - residue) / aPeriod) * aPeriod;
    if (i > most) continue;
    const j = (a.start + i * a.stride - d - b.start) / b.stride;
    const start = Math.max(a.start + i * a.stride, b.start + j * b.stride);
    const length = Math.min(a.length, d + a.length, b.length, b.length - d);
    const count = Math.floor((most - i) / aPeriod) + 1;
    out.push({
      start,
      length,
      count,
      stride: count === 1 ? length : aPeriod * a.stride,
      aLocal: a.value + i * a.valueStride + Math.max(0, -d),
      aStride: count === 1 ? length : aPeriod * a.valueStride,
      bLocal: b.value + j * b.valueStride + Math.max(0, d),
      bStride: count === 1 ? length : bPeriod * b.valueStride,
    });
  }
}

/** Greatest common divisor of two positive integers. */
export function greatestCommonDivisor(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}

function modulo(value: number, by: number): number {
  const rest = value % by;
  return rest < 0 ? rest + by : rest;
}

/** Products of two residues may pass 2^53. */
function multiplyModulo(a: number, b: number, by: number): number {
  const exact = a * b;
  return Number.isSafeInteger(exact) ? exact % by : Number((BigInt(a) * BigInt(b)) % BigInt(by));
}

/** x with value * x = 1 modulo `by`, for coprime arguments (extended Euclid; intermediate values stay below `by`). */
function inverseModulo(value: number, by: number): number {
  if (by === 1) return 0;
  let [r0, r1, x0, x1] = [by, value, 0, 1];
  while (r1 !== 0) {
    const q = Math.floor(r0 / r1);
    [r0, r1, x0, x1] = [r1, r0 - q * r1, x1, x0 - q * x1];
  }
  return modulo(x0, by);
}
