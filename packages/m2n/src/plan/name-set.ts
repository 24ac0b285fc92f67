// SPDX-License-Identifier: Apache-2.0
// Finds repeated names by hashes that are known already; a Set would hash 10^5 strings again.

/** Open addressing over the names of a list. */
export class NameSet {
  readonly #list: readonly { readonly name: string }[];
  /** Index + 1 in the list, 0 where free. */
  readonly #slots: Int32Array;

  constructor(list: readonly { readonly name: string }[]) {
    this.#list = list;
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * list.length + 2)));
  }

  /** Adds the name at `index` and returns the index of an equal one that was added before, or -1. `hash` is any function of the name. */
  add(index: number, hash: number): number {
    const { name } = this.#list[index]!;
    const mask = this.#slots.length - 1;
    // FNV-1a mixes upwards only, so the high bits are folded into the low ones.
    let slot = (hash ^ (hash >>> 15)) & mask;
    for (;;) {
      const entry = this.#slots[slot]!;
      if (entry === 0) {
        this.#slots[slot] = index + 1;
        return -1;
      }
      if (this.#list[entry - 1]!.name === name) return entry - 1;
      slot = (slot + 1) & mask;
    }
  }
}
