// SPDX-License-Identifier: Apache-2.0
// Columns stay aligned with styled, empty and short cells; sentences break between words.

import { expect, it } from 'vitest';
import { table } from './table.js';
import { wrap } from './wrap.js';

it('aligns left and right, and leaves no blanks at line ends', () => {
  const text = table(
    [
      ['name', 'bytes', ''],
      ['a', '1', 'x'],
      ['longer', '100', 'y'],
    ],
    { right: [1] },
  );
  expect(text).toBe('  name    bytes\n  a           1  x\n  longer    100  y\n');
});

it('does not count colour as width', () => {
  const text = table([
    ['\u001b[1mab\u001b[22m', 'x'],
    ['abc', 'y'],
  ]);
  expect(text).toBe('  \u001b[1mab\u001b[22m   x\n  abc  y\n');
});

it('wraps between words and keeps long words whole', () => {
  expect(wrap('one two three', 7)).toEqual(['one two', 'three']);
  expect(wrap('a extraordinarily b', 5)).toEqual(['a', 'extraordinarily', 'b']);
  expect(wrap('', 5)).toEqual(['']);
});
