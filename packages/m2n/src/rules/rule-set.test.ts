// SPDX-License-Identifier: Apache-2.0
// Rules have one form: those that are built in and documented have it, and files of another are refused by field.

import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { refusal } from '../refusal.test-util.js';
import { builtInRules } from './built-in-rules.js';
import { parseRuleSet } from './rule-set.js';

describe('the rules that hold', () => {
  it('built-in rules pass their own schema', () => {
    for (const [name, rules] of Object.entries(builtInRules))
      expect(parseRuleSet(JSON.parse(JSON.stringify(rules)), name)).toEqual(rules);
  });
});

describe('refused', () => {
  const bad = (json: unknown) => refusal(() => parseRuleSet(json, 'mine.json')).message;
  it('malformed files, naming the field', () => {
    expect(bad({ name: 'x', rules: [{ match: 'a', cut: 'diagonal' }] })).toMatch(
      /mine\.json.*"column".*rules\[0\]\.cut/s,
    );
    expect(bad({ name: 'x', rules: [{ match: 'layers.3.a', cut: 'row' }] })).toMatch(
      /\{layer\}.*rules\[0\]\.match/s,
    );
    expect(bad({ name: 'x', rules: [{ match: 'a', cut: 'row', typo: 1 }] })).toMatch(/typo/);
    expect(bad({ name: 'x', rules: [], views: { v: [{ from: ['a', 'b'], into: ['c', 'd'] }] } })).toMatch(
      /one name/,
    );
    expect(bad({ name: 'x', rules: [], views: { v: [{ from: ['a*', 'b'], into: ['c'] }] } })).toMatch(/\*/);
    expect(bad({ name: 'x', rules: [], views: { v: [{ from: ['a*b'], into: ['c*'] }] } })).toMatch(/\*/);
  });
});

it('the rules of docs/rules.md are rules', async () => {
  const text = await readFile(new URL('../../../../docs/rules.md', import.meta.url), 'utf8');
  expect(parseRuleSet(JSON.parse(/```json\n(.*?)```/s.exec(text)![1]!), 'docs').rules).toHaveLength(8);
});
