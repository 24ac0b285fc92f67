// SPDX-License-Identifier: Apache-2.0
// Adds up the progress of a refit and tells it at a bearable rate.

import type { RefitPhase, RefitProgress } from './refit-result.js';

/** A listener hears at most this often within a phase, in milliseconds; begin and end of a phase always. */
const interval = 50;

export class ProgressMeter {
  readonly #listener: ((progress: RefitProgress) => void) | undefined;
  #phase: RefitPhase = 'plan';
  #bytes = 0;
  #totalBytes = 0;
  #toldAt = 0;

  constructor(listener: ((progress: RefitProgress) => void) | undefined) {
    this.#listener = listener;
  }

  begin(phase: RefitPhase, totalBytes: number): void {
    this.#phase = phase;
    this.#totalBytes = totalBytes;
    this.#bytes = 0;
    this.#tell(true);
  }

  add(bytes: number): void {
    this.set(this.#bytes + bytes);
  }

  set(bytes: number): void {
    // Storages are padded, so the sum of pieces may miss the total; the end of the phase says it is complete.
    this.#bytes = Math.min(bytes, this.#totalBytes);
    this.#tell(false);
  }

  end(): void {
    this.#bytes = this.#totalBytes;
    this.#tell(true);
  }

  #tell(always: boolean): void {
    const now = performance.now();
    if (!always && now - this.#toldAt < interval) return;
    this.#toldAt = now;
    this.#listener?.({ phase: this.#phase, bytes: this.#bytes, totalBytes: this.#totalBytes });
  }
}
