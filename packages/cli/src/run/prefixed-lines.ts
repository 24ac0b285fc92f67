// SPDX-License-Identifier: Apache-2.0
// Output of several ranks on one stream: whole lines only, each with the rank it comes from.

/** Collects text and writes it by whole lines, `prefix` before each. */
export class PrefixedLines {
  readonly #prefix: string;
  readonly #write: (text: string) => unknown;
  #partial = '';

  constructor(prefix: string, write: (text: string) => unknown) {
    this.#prefix = prefix;
    this.#write = write;
  }

  add(text: string): void {
    const end = text.lastIndexOf('\n');
    if (end === -1) {
      this.#partial += text;
      return;
    }
    const whole = this.#partial + text.slice(0, end);
    this.#partial = text.slice(end + 1);
    // One write, so that lines of other ranks come before or after.
    this.#write(`${this.#prefix}${whole.split('\n').join(`\n${this.#prefix}`)}\n`);
  }

  /** Writes what came after the last line break as a line. */
  end(): void {
    if (this.#partial !== '') this.add('\n');
  }
}
