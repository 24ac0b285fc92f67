// SPDX-License-Identifier: Apache-2.0
// Remembers the plans that were used last, so that a loop that reshards the same tensors plans once.

/** A map that drops what was used longest ago. */
export class RecentlyUsed<V> {
  readonly #entries = new Map<string, V>();

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    return value;
  }

  /** Keeps at most `capacity` entries; 0 keeps none. */
  set(key: string, value: V, capacity: number): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= capacity) return;
      this.#entries.delete(oldest);
    }
  }
}
