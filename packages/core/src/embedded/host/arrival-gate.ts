// SPDX-License-Identifier: Apache-2.0
// Where the collective host calls of one rank pass, in order: at once, late while the rank is delayed, not while it is stopped.

/** Fault injection for host calls; streams have their own words for it. */
export class ArrivalGate {
  readonly #waiting: { readonly readyAt: number; readonly pass: () => void }[] = [];
  #stopped = false;
  #delay = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Calls `pass` when the call arrives. */
  arrive(pass: () => void): void {
    this.#waiting.push({ readyAt: performance.now() + this.#delay, pass });
    this.#pump();
  }

  delay(milliseconds: number): void {
    this.#delay = milliseconds;
  }

  stop(stopped: boolean): void {
    this.#stopped = stopped;
    this.#pump();
  }

  #pump(): void {
    clearTimeout(this.#timer);
    while (!this.#stopped) {
      const first = this.#waiting[0];
      if (first === undefined) return;
      const rest = first.readyAt - performance.now();
      if (rest > 0) {
        this.#timer = setTimeout(() => this.#pump(), Math.ceil(rest));
        return;
      }
      this.#waiting.shift();
      first.pass();
    }
  }
}
