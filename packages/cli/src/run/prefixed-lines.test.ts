// SPDX-License-Identifier: Apache-2.0
// However text is cut into pieces, lines come out whole.

import { describe, expect, it } from 'vitest';
import { PrefixedLines } from './prefixed-lines.js';

describe('PrefixedLines', () => {
  it.each([
    [[], []],
    [['a\n'], ['> a\n']],
    [
      ['a', 'b\nc'],
      ['> ab\n', '> c\n'],
    ],
    [['a\nb\n\n'], ['> a\n> b\n> \n']],
    [
      ['a', '\n', '\n'],
      ['> a\n', '> \n'],
    ],
    [['$& $1\n'], ['> $& $1\n']],
    [['a', ''], ['> a\n']],
  ])('%j', (pieces, written) => {
    const out: string[] = [];
    const lines = new PrefixedLines('> ', (text) => out.push(text));
    for (const piece of pieces) lines.add(piece);
    lines.end();
    expect(out).toEqual(written);
  });

  it('keeps a prefix with dollar signs', () => {
    const out: string[] = [];
    new PrefixedLines('$& ', (text) => out.push(text)).add('a\nb\n');
    expect(out).toEqual(['$& a\n$& b\n']);
  });
});
