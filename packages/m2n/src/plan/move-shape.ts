// SPDX-License-Identifier: Apache-2.0
// Turns a cell, or any contiguous stretch of its elements, into as few strided moves as possible.

import type { RunIntersection } from '@nccl-ext/core';
import { type MoveList, pushBox } from './strided-box.js';

/** Where one side of a move keeps the atom. */
export interface Place {
  readonly byteOffset: number;
  readonly byteStrides: readonly number[];
  readonly elementBytes: number;
}

/** One loop of a cell, in bytes per step on both sides. Periodic dimensions that need several progressions keep them in `items`. */
interface Axis {
  readonly n: number;
  readonly source: number;
  readonly destination: number;
  readonly items?: readonly Strip[];
}

/** A progression of a dimension: `count` intervals of `length`, as byte offsets and steps. */
interface Strip {
  readonly length: number;
  readonly count: number;
  readonly sourceAt: number;
  readonly destinationAt: number;
  readonly sourceStep: number;
  readonly destinationStep: number;
}

/** Where a cell may be cut: at multiples of `unit` inside each `row`. Both in elements. */
export interface Granule {
  readonly unit: number;
  readonly row: number;
}

/** Pieces keep this alignment, in bytes. */
export const alignment = 128;

/**
 * The elements of a cell in one order for everybody: row-major over the dimensions, each in the order of its
 * progressions. The order depends on the regions alone, not on where a side keeps them, so that all ranks cut alike.
 */
export class MoveShape {
  readonly elements: number;
  readonly #axes: readonly Axis[];
  /** Elements of one step of each axis. */
  readonly #steps: readonly number[];
  readonly #source: Place;
  readonly #destination: Place;
  readonly #sourceBase: number;
  readonly #destinationBase: number;
  #whole: MoveList | undefined;

  /**
   * @param overlaps what the two atoms share, per dimension
   * @param forwards the source reads the destination atom, as ranks do that forward
   */
  constructor(
    overlaps: readonly (readonly RunIntersection[])[],
    source: Place,
    destination: Place,
    forwards: boolean,
  ) {
    this.#source = source;
    this.#destination = destination;
    const axes: Axis[] = [];
    let sourceBase = source.byteOffset;
    let destinationBase = destination.byteOffset;
    overlaps.forEach((items, d) => {
      const strips = items.map((item) =>
        toStrip(item, source.byteStrides[d]!, destination.byteStrides[d]!, forwards),
      );
      const steps = { source: source.byteStrides[d]!, destination: destination.byteStrides[d]! };
      const only = strips.length === 1 ? strips[0] : undefined;
      if (only) {
        sourceBase += only.sourceAt;
        destinationBase += only.destinationAt;
        pushAxis(axes, { n: only.count, source: only.sourceStep, destination: only.destinationStep });
        pushAxis(axes, { n: only.length, ...steps });
      } else {
        axes.push({
          n: strips.reduce((sum, { length, count }) => sum + length * count, 0),
          ...steps,
          items: strips,
        });
      }
    });
    this.#axes = axes;
    this.#sourceBase = sourceBase;
    this.#destinationBase = destinationBase;
    const sizes: number[] = [];
    let size = 1;
    for (let k = axes.length - 1; k >= 0; k--) {
      sizes[k] = size;
      size *= axes[k]!.n;
    }
    this.#steps = sizes;
    this.elements = size;
  }

  /** All elements. */
  whole(): MoveList {
    this.#whole ??= this.moves(0, this.elements);
    return this.#whole;
  }

  /** The elements [from, to). */
  moves(from: number, to: number): MoveList {
    const list: MoveList = {
      source: [],
      destination: [],
      inner: [],
      counts: [],
      sourceStrides: [],
      destinationStrides: [],
    };
    if (from < to) this.#cut(0, from, to, [], list);
    return list;
  }

  /** Where cuts keep rows of up to `limitBytes` whole, and the alignment inside longer ones. `wireBytes` is per element. */
  granule(limitBytes: number, wireBytes: number): Granule {
    let unit = 1;
    for (let k = this.#axes.length - 1; k >= 0; k--) {
      const row = unit * this.#axes[k]!.n;
      if (row * wireBytes > limitBytes)
        return { unit: unit * Math.ceil(alignment / (unit * wireBytes)), row };
      unit = row;
    }
    return { unit, row: unit };
  }

  /** A stretch of a row-major space is a cut first row, whole rows, and a cut last row, at every level. */
  #cut(
    k: number,
    from: number,
    to: number,
    box: readonly (readonly [number, number])[],
    list: MoveList,
  ): void {
    if (k === this.#axes.length) {
      this.#emit(box, list);
      return;
    }
    const step = this.#steps[k]!;
    let first = Math.floor(from / step);
    const last = Math.floor(to / step);
    const head = from - first * step;
    const tail = to - last * step;
    if (first === last) {
      this.#cut(k + 1, head, tail, [...box, [first, first + 1]], list);
      return;
    }
    if (head > 0) {
      this.#cut(k + 1, head, step, [...box, [first, first + 1]], list);
      first++;
    }
    if (last > first) this.#cut(k + 1, 0, step, [...box, [first, last]], list);
    if (tail > 0) this.#cut(k + 1, 0, tail, [...box, [last, last + 1]], list);
  }

  #emit(box: readonly (readonly [number, number])[], list: MoveList): void {
    const visit = (k: number, source: number, destination: number, loops: readonly Axis[]): void => {
      if (k === this.#axes.length) {
        pushBox(list, source, destination, loops, this.#source.elementBytes, this.#destination.elementBytes);
        return;
      }
      const axis = this.#axes[k]!;
      const [from, to] = box[k]!;
      if (!axis.items) {
        const loop = { n: to - from, source: axis.source, destination: axis.destination };
        visit(k + 1, source + from * axis.source, destination + from * axis.destination, [...loops, loop]);
        return;
      }
      for (const strip of stripsWithin(axis, from, to)) {
        visit(k + 1, source + strip.sourceAt, destination + strip.destinationAt, [
          ...loops,
          { n: strip.count, source: strip.sourceStep, destination: strip.destinationStep },
          { n: strip.length, source: axis.source, destination: axis.destination },
        ]);
      }
    };
    visit(0, this.#sourceBase, this.#destinationBase, []);
  }
}

function toStrip(
  item: RunIntersection,
  sourceBytes: number,
  destinationBytes: number,
  forwards: boolean,
): Strip {
  return {
    length: item.length,
    count: item.count,
    sourceAt: (forwards ? item.bLocal : item.aLocal) * sourceBytes,
    destinationAt: item.bLocal * destinationBytes,
    sourceStep: (forwards ? item.bStride : item.aStride) * sourceBytes,
    destinationStep: item.bStride * destinationBytes,
  };
}

/** Joins an axis with the one outside of it when together they are one loop. */
function pushAxis(axes: Axis[], axis: Axis): void {
  if (axis.n === 1) return;
  const outer = axes.at(-1);
  if (
    outer &&
    !outer.items &&
    outer.source === axis.n * axis.source &&
    outer.destination === axis.n * axis.destination
  ) {
    axes[axes.length - 1] = { n: outer.n * axis.n, source: axis.source, destination: axis.destination };
  } else {
    axes.push(axis);
  }
}

/** The positions [from, to) of a dimension that consists of several progressions. */
function stripsWithin({ items, source, destination }: Axis, from: number, to: number): Strip[] {
  const out: Strip[] = [];
  let base = 0;
  for (const strip of items!) {
    const { length, count } = strip;
    const low = Math.max(0, from - base);
    const high = Math.min(length * count, to - base);
    base += length * count;
    if (low >= high) continue;
    let first = Math.floor(low / length);
    const last = Math.floor(high / length);
    const add = (index: number, skip: number, size: number, repeat: number): void => {
      out.push({
        ...strip,
        length: size,
        count: repeat,
        sourceAt: strip.sourceAt + index * strip.sourceStep + skip * source,
        destinationAt: strip.destinationAt + index * strip.destinationStep + skip * destination,
      });
    };
    const head = low - first * length;
    const tail = high - last * length;
    if (first === last) {
      add(first, head, tail - head, 1);
      continue;
    }
    if (head > 0) add(first++, head, length - head, 1);
    if (last > first) add(first, 0, length, last - first);
    if (tail > 0) add(last, 0, tail, 1);
  }
  return out;
}
