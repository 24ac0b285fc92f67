// SPDX-License-Identifier: Apache-2.0
// What stands before the script is ours, all else is the script's.

import { describe, expect, it } from 'vitest';
import { splitWords } from './split-words.js';

const definitions = {
  ranks: { type: 'string', alias: 'n' },
  json: { type: 'boolean' },
  help: { type: 'boolean', alias: 'h' },
} as const;

describe('splitWords', () => {
  it.each([
    ['', '', ''],
    ['-n 4 --json', '-n 4 --json', ''],
    ['-n 4 s.mjs', '-n 4', 's.mjs'],
    ['-n4 s.mjs', '-n4', 's.mjs'],
    ['--ranks=4 s.mjs --json -h', '--ranks=4', 's.mjs --json -h'],
    ['--json -n 4 -- s.mjs a', '--json -n 4', 's.mjs a'],
    ['-n 4 s.mjs -- a', '-n 4', 's.mjs -- a'],
    ['-n 4 -- -odd.mjs', '-n 4', '-odd.mjs'],
    ['-n 4 --', '-n 4', ''],
    ['s.mjs -n 4', '', 's.mjs -n 4'],
    ['--unknown s.mjs', '--unknown', 's.mjs'],
  ])('%j', (line, own, words) => {
    const list = (text: string): string[] => text.split(' ').filter((word) => word !== '');
    expect(splitWords(definitions, list(line))).toEqual({ own: list(own), words: list(words) });
  });
});
