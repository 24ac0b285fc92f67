// SPDX-License-Identifier: Apache-2.0
// One line on a terminal that is rewritten while bytes move: how many, how fast, how long still. Silent elsewhere.

import { bytesText, rateText, timeText } from './units.js';

/** Bytes done of a phase. */
export interface ProgressState {
  readonly phase: string;
  readonly bytes: number;
  readonly totalBytes: number;
}

interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Carriage return, then erase to the end of the line (ECMA-48 EL). */
const eraseLine = '\r\u001b[K';

export class ProgressLine {
  readonly #terminal: Terminal | undefined;
  readonly #now: () => number;
  #phase = '';
  #began = 0;
  #shown = false;

  /** @param now milliseconds of a steady clock. */
  constructor(terminal: Terminal, now: () => number = () => performance.now()) {
    this.#terminal = terminal.isTTY === true ? terminal : undefined;
    this.#now = now;
  }

  update(state: ProgressState): void {
    if (this.#terminal === undefined) return;
    if (state.phase !== this.#phase) {
      this.#phase = state.phase;
      this.#began = this.#now();
    }
    const text = progressText(state, this.#now() - this.#began);
    this.say(text);
  }

  /** A line without bytes. */
  say(text: string): void {
    if (this.#terminal === undefined) return;
    // A line that wraps could not be erased. Terminals that do not know their width say 0.
    const { columns = 0 } = this.#terminal;
    this.#terminal.write(eraseLine + text.slice(0, (columns > 0 ? columns : 80) - 1));
    this.#shown = true;
  }

  clear(): void {
    if (this.#shown) this.#terminal?.write(eraseLine);
    this.#shown = false;
  }
}

/** As in `move   45 %  181 MB of 403 MB  9.10 GB/s  24.4 ms left`. */
export function progressText({ phase, bytes, totalBytes }: ProgressState, elapsedMs: number): string {
  if (totalBytes === 0) return phase;
  const percent = `${Math.floor((100 * bytes) / totalBytes)} %`.padStart(5);
  const start = `${phase.padEnd(5)} ${percent}  ${bytesText(bytes)} of ${bytesText(totalBytes)}`;
  if (bytes === 0 || elapsedMs === 0) return start;
  const left = ((totalBytes - bytes) * elapsedMs) / bytes;
  return `${start}  ${rateText(bytes / elapsedMs / 1e6)}  ${timeText(left)} left`;
}
