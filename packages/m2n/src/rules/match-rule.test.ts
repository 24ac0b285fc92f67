// SPDX-License-Identifier: Apache-2.0
// The first rule that matches a name holds; a name without one is refused, with the closest.

import { describe, expect, it } from 'vitest';
import { refusal } from '../refusal.test-util.js';
import { matchRule } from './match-rule.js';
import { partsOf, refit, rulesOf, tensor } from './small-refits.test-util.js';

describe('the rules that hold', () => {
  it('the first of two that match holds', () => {
    const rules = rulesOf({
      rules: [
        { match: 'a.*', cut: 'column' },
        { match: 'a.w', cut: 'replicated' },
      ],
    });
    expect(matchRule(rules, 'a.w')?.cut).toBe('column');
  });

  it('characters of expressions have no meaning in names', () => {
    const rules = rulesOf({ rules: [{ match: 'a.(b)+*', cut: 'column' }] });
    expect(matchRule(rules, 'a.(b)+c')).toBeDefined();
    expect(matchRule(rules, 'aX(b)+c')).toBeUndefined();
  });
});

describe('refused', () => {
  it('a parameter without a rule, naming it and the closest rule; unless there is a default', () => {
    const rules = rulesOf({
      rules: [
        { match: 'layers.{layer}.up.weight', cut: 'column' },
        { match: 'norm', cut: 'replicated' },
      ],
    });
    const error = refusal(() => refit({ 'layers.4.pu.weight': tensor(2) }, rules));
    expect(error.code).toBe('ERR_RULES');
    expect(error.message).toMatch(/"layers\.4\.pu\.weight"; the closest is "layers\.\{layer\}\.up\.weight"/);
    expect(
      partsOf(refit({ 'layers.4.pu.weight': tensor(2) }, { ...rules, otherwise: 'replicated' })),
    ).toHaveLength(1);
    expect(refusal(() => refit({ a: tensor(2) }, rulesOf({}))).message).toMatch(/they are empty/);
  });
});
