// SPDX-License-Identifier: Apache-2.0
// A rank's dense local tensor as the oracle sees it: which global element stands at each local position.

import { type Interval, lengthOf } from './held-intervals.js';

/** Called for local elements [at, at + length), counted from the first one asked for, whose linear global indices are consecutive. */
export type RunVisitor = (at: number, global: number, length: number) => void;

/** The product of what is held per dimension, row-major. */
export class Shard {
  readonly shape: readonly number[];
  readonly elements: number;
  /** Equal for ranks that hold the same. */
  readonly key: string;
  readonly #held: readonly (readonly Interval[])[];
  readonly #global: readonly number[];

  /** @param global extents of the whole tensor */
  constructor(global: readonly number[], held: readonly (readonly Interval[])[]) {
    this.#global = global;
    this.#held = held;
    this.shape = held.map(lengthOf);
    this.elements = this.shape.reduce((product, extent) => product * extent, 1);
    this.key = held.map((list) => list.map(({ start, length }) => `${start}+${length}`).join()).join(';');
  }

  /** Visits local elements [first, first + count) in order. */
  forEachRun(first: number, count: number, visit: RunVisitor): void {
    const last = this.#held.at(-1) ?? [{ start: 0, length: 1 }];
    const row = lengthOf(last);
    const end = first + count;
    for (let local = first; local < end; ) {
      const rowIndex = Math.floor(local / row);
      const base = this.#rowStart(rowIndex);
      let column = 0;
      for (const { start, length } of last) {
        const from = Math.max(local - rowIndex * row, column);
        const to = Math.min(end - rowIndex * row, column + length);
        if (from < to) visit(rowIndex * row + from - first, base + start + from - column, to - from);
        column += length;
      }
      local = (rowIndex + 1) * row;
    }
  }

  /** The global index of a local element. */
  globalIndexOf(local: number): readonly number[] {
    let rest = local;
    const index: number[] = [];
    for (let dim = this.shape.length - 1; dim >= 0; dim--) {
      index.unshift(positionAt(this.#held[dim]!, rest % this.shape[dim]!));
      rest = Math.floor(rest / this.shape[dim]!);
    }
    return index;
  }

  /** Linear global index of the first column of a local row. */
  #rowStart(rowIndex: number): number {
    let rest = rowIndex;
    let stride = this.#global.at(-1) ?? 1;
    let linear = 0;
    for (let dim = this.shape.length - 2; dim >= 0; dim--) {
      linear += stride * positionAt(this.#held[dim]!, rest % this.shape[dim]!);
      rest = Math.floor(rest / this.shape[dim]!);
      stride *= this.#global[dim]!;
    }
    return linear;
  }
}

function positionAt(held: readonly Interval[], local: number): number {
  let before = 0;
  for (const { start, length } of held) {
    if (local < before + length) return start + local - before;
    before += length;
  }
  throw new RangeError(`local position ${local} of ${before}`);
}
