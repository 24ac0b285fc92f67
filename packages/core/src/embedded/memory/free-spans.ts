// SPDX-License-Identifier: Apache-2.0
// Which bytes of one block are free: best fit with splitting, and coalescing on release.

/** Every span starts and ends at a multiple of this, as cudaMalloc's do. */
export const spanAlignment = 256;

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Free spans of one block, sorted by offset; neighbours never touch. */
export class FreeSpans {
  readonly #spans: Span[];
  readonly #start: number;
  #touched: number;

  constructor(start: number, end: number) {
    this.#spans = [{ start, end }];
    this.#start = start;
    this.#touched = start;
  }

  /** Bytes from the block's first byte to the highest one that was ever taken: what the operating system may back. */
  get touchedBytes(): number {
    return this.#touched - this.#start;
  }

  /** Length of the smallest span that holds `bytes`, Infinity when none does. */
  fit(bytes: number): number {
    const best = this.#bestIndex(bytes);
    return best < 0 ? Number.POSITIVE_INFINITY : this.#spans[best]!.end - this.#spans[best]!.start;
  }

  /** Takes `bytes` (a multiple of the alignment) and returns their offset; undefined when no span is long enough. */
  take(bytes: number): number | undefined {
    const best = this.#bestIndex(bytes);
    if (best < 0) return undefined;
    const { start, end } = this.#spans[best]!;
    if (start + bytes === end) this.#spans.splice(best, 1);
    else this.#spans[best] = { start: start + bytes, end };
    this.#touched = Math.max(this.#touched, start + bytes);
    return start;
  }

  /** Gives back what `take` returned. */
  release(offset: number, bytes: number): void {
    let index = this.#indexAfter(offset);
    let start = offset;
    let end = offset + bytes;
    const next = this.#spans[index];
    if (next?.start === end) {
      end = next.end;
      this.#spans.splice(index, 1);
    }
    const previous = this.#spans[index - 1];
    if (previous?.end === start) {
      start = previous.start;
      index--;
      this.#spans.splice(index, 1);
    }
    this.#spans.splice(index, 0, { start, end });
  }

  /** The first span that starts after `offset`. */
  #indexAfter(offset: number): number {
    let low = 0;
    let high = this.#spans.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#spans[middle]!.start > offset) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The shortest span that is long enough, the lowest of equals; -1 when there is none. */
  #bestIndex(bytes: number): number {
    let best = -1;
    let length = Number.POSITIVE_INFINITY;
    for (let i = 0; i < this.#spans.length; i++) {
      const span = this.#spans[i]!;
      const size = span.end - span.start;
      if (size < bytes || size >= length) continue;
      best = i;
      length = size;
      if (size === bytes) break;
    }
    return best;
  }
}
