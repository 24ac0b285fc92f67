// SPDX-License-Identifier: Apache-2.0
// docs/options.md is what the table says, and the table can be written in Markdown.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { optionNames, optionTable } from './option-table.js';
import { optionsMarkdown } from './options-markdown.js';

it('equals docs/options.md', () => {
  const committed = readFileSync(new URL('../../../../docs/options.md', import.meta.url), 'utf8');
  expect(committed).toBe(optionsMarkdown());
});

it('has one row of six cells per option', () => {
  const rows = optionsMarkdown()
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  expect(rows.map((row) => row.split('|').length)).toEqual(optionNames.map(() => 8));
  for (const [index, name] of optionNames.entries()) {
    expect(rows[index]).toContain(`| \`${name}\` | \`${optionTable[name].variable}\` |`);
  }
});
