// SPDX-License-Identifier: Apache-2.0
// Breaks a sentence into lines between words.

/** Lines of at most `width` characters; a longer word keeps a line of its own, leading spaces stay. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line: string | undefined;
  for (const word of text.split(' ')) {
    if (line !== undefined && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === undefined ? word : `${line} ${word}`;
    }
  }
  return [...lines, line ?? ''];
}
