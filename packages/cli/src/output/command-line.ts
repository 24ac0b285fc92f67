// SPDX-License-Identifier: Apache-2.0
// The command as it can be pasted into a shell again.

/** Words that a POSIX shell reads back as they are; others are quoted. */
export function commandLine(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}
