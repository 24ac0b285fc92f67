// SPDX-License-Identifier: Apache-2.0
// Where the options of `run` end and the script begins: `--json` or `--help` after the script are the script's, not ours.

import { parseArgs } from 'node:util';
import type { ArgsDef } from 'citty';
import { parseOptions } from '../arguments/parse-options.js';

export interface SplitWords {
  /** The command's options and their values. */
  readonly own: readonly string[];
  /** The first word that is no option's value and all that follow; a `--` between the two is dropped. */
  readonly words: readonly string[];
}

/** Splits the arguments of a command with these definitions. */
export function splitWords(definitions: ArgsDef, rawArgs: readonly string[]): SplitWords {
  const { tokens } = parseArgs({
    args: [...rawArgs],
    options: parseOptions(definitions),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const end = tokens.find(({ kind }) => kind !== 'option');
  if (end === undefined) return { own: rawArgs, words: [] };
  const skipped = end.kind === 'option-terminator' ? 1 : 0;
  return { own: rawArgs.slice(0, end.index), words: rawArgs.slice(end.index + skipped) };
}
