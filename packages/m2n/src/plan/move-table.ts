// SPDX-License-Identifier: Apache-2.0
// Collects moves in any order of peers and tensors, and hands them out as one sorted table.

import { type MoveTable, moveLoops } from '@nccl-ext/core/contract';
import type { MoveList } from './strided-box.js';

/** Where the moves of a list go. */
export interface MoveHead {
  readonly stage: 0 | 1;
  readonly peer: number;
  readonly transform: number;
  /** Bytes per unit of `inner`: 1 where elements are converted. */
  readonly unitBytes: number;
}

/** One entry per call of `add`: a list of moves that goes to one tensor of one peer. Columns, because there are 10^5 entries. */
export class MoveTableBuilder {
  readonly #lists: MoveList[] = [];
  readonly #heads: MoveHead[] = [];
  readonly #tensors: number[] = [];
  readonly #sourceTensors: number[] = [];
  #length = 0;

  /** `tensor` is its index at the receiver, `sourceTensor` at the sender. */
  add(head: MoveHead, tensor: number, sourceTensor: number, moves: MoveList): void {
    this.#lists.push(moves);
    this.#heads.push(head);
    this.#tensors.push(tensor);
    this.#sourceTensors.push(sourceTensor);
    this.#length += moves.inner.length;
  }

  /** Sorted by (stage, peer, tensor); entries that agree in all three stay in the order of `add`. */
  build(): MoveTable {
    const length = this.#length;
    const table = {
      length,
      peer: new Int32Array(length),
      stage: new Uint8Array(length),
      tensor: new Int32Array(length),
      sourceTensor: new Int32Array(length),
      sourceOffset: new Float64Array(length),
      destinationOffset: new Float64Array(length),
      inner: new Float64Array(length),
      counts: new Float64Array(length * moveLoops),
      sourceStrides: new Float64Array(length * moveLoops),
      destinationStrides: new Float64Array(length * moveLoops),
      transform: new Uint16Array(length),
    };
    const order = this.#order();
    let at = 0;
    for (let next = 0; next < order.length; next++) {
      const i = order[next]!;
      const head = this.#heads[i]!;
      const list = this.#lists[i]!;
      for (let k = 0; k < list.inner.length; k++, at++) {
        table.peer[at] = head.peer;
        table.stage[at] = head.stage;
        table.tensor[at] = this.#tensors[i]!;
        table.sourceTensor[at] = this.#sourceTensors[i]!;
        table.sourceOffset[at] = list.source[k]!;
        table.destinationOffset[at] = list.destination[k]!;
        table.inner[at] = list.inner[k]! * head.unitBytes;
        table.transform[at] = head.transform;
        for (let loop = 0; loop < moveLoops; loop++) {
          const to = at * moveLoops + loop;
          const from = k * moveLoops + loop;
          table.counts[to] = list.counts[from]!;
          table.sourceStrides[to] = list.sourceStrides[from]!;
          table.destinationStrides[to] = list.destinationStrides[from]!;
        }
      }
    }
    return table;
  }

  #order(): Uint32Array {
    const keys = new Int32Array(this.#heads.length);
    let order: Uint32Array = new Uint32Array(keys.length);
    for (let i = 0; i < keys.length; i++) {
      order[i] = i;
      keys[i] = this.#tensors[i]!;
    }
    order = countingSort(order, keys);
    for (let i = 0; i < keys.length; i++) keys[i] = this.#heads[i]!.peer;
    order = countingSort(order, keys);
    for (let i = 0; i < keys.length; i++) keys[i] = this.#heads[i]!.stage;
    return countingSort(order, keys);
  }
}

/** Stable, by small non-negative keys. */
function countingSort(items: Uint32Array, keys: Int32Array): Uint32Array {
  let highest = 0;
  for (let i = 0; i < keys.length; i++) highest = Math.max(highest, keys[i]!);
  if (highest === 0) return items;
  const next = new Uint32Array(highest + 2);
  for (let i = 0; i < keys.length; i++) next[keys[i]! + 1]!++;
  for (let key = 0; key <= highest; key++) next[key + 1]! += next[key]!;
  const sorted = new Uint32Array(items.length);
  for (let i = 0; i < items.length; i++) sorted[next[keys[items[i]!]!]!++] = items[i]!;
  return sorted;
}
