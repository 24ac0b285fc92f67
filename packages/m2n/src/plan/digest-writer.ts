// SPDX-License-Identifier: Apache-2.0
// Writes canonical JSON straight into a hash: strings for 10^5 tensors would cost more than planning them.

import { createHash, type Hash } from 'node:crypto';

const chunkBytes = 1 << 16;
const shortText = 1024;
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const zero = 0x30;

/** Collects bytes for a SHA-256. */
export class DigestWriter {
  readonly #hash: Hash = createHash('sha256');
  readonly #bytes = new Uint8Array(chunkBytes);
  #filled = 0;

  /** JSON text. Short pieces are collected, because every update of the hash has its price. */
  text(text: string): void {
    if (text.length <= shortText && this.#append(text)) return;
    this.#flush();
    this.#hash.update(text);
  }

  /** The inside of a JSON array of non-negative integers. */
  integers(values: ArrayLike<number>): void {
    for (let i = 0; i < values.length; i++) {
      if (this.#filled + 24 > chunkBytes) this.#flush();
      if (i > 0) this.#bytes[this.#filled++] = comma;
      this.#integer(values[i]!);
    }
  }

  /**
   * The inside of a JSON array of strings, and a 31-bit hash of each in `hashes`. Strings that were put together from
   * parts are never made flat one by one: joining them writes their parts straight into one text.
   */
  strings(values: readonly string[], hashes: Int32Array): void {
    if (values.length === 0) return;
    const text = values.join('","');
    let plain = true;
    let at = 0;
    for (let i = 0; i < values.length; i++) {
      const end = at + values[i]!.length;
      let hash = 0x811c9dc5; // FNV-1a
      for (; at < end; at++) {
        const code = text.charCodeAt(at);
        if (code < 0x20 || code > 0x7e || code === quote || code === backslash) plain = false;
        hash = Math.imul(hash ^ code, 0x01000193);
      }
      hashes[i] = hash & 0x7fff_ffff;
      at += 3;
    }
    this.text(plain ? `"${text}"` : JSON.stringify(values).slice(1, -1));
  }

  /** Ends the text; hexadecimal. */
  digest(): string {
    this.#flush();
    return this.#hash.digest('hex');
  }

  /** False and nothing written when the text is not ASCII. */
  #append(text: string): boolean {
    if (this.#filled + text.length > chunkBytes) this.#flush();
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return false;
      this.#bytes[this.#filled + i] = code;
    }
    this.#filled += text.length;
    return true;
  }

  #integer(value: number): void {
    const bytes = this.#bytes;
    let digits = 1;
    for (let power = 10; power <= value; power *= 10) digits++;
    let rest = value;
    for (let at = this.#filled + digits - 1; at >= this.#filled; at--) {
      const next = rest < 0x4000_0000 ? (rest / 10) | 0 : Math.floor(rest / 10);
      bytes[at] = zero + (rest - next * 10);
      rest = next;
    }
    this.#filled += digits;
  }

  #flush(): void {
    if (this.#filled === 0) return;
    this.#hash.update(this.#bytes.subarray(0, this.#filled));
    this.#filled = 0;
  }
}
