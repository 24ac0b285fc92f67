// SPDX-License-Identifier: Apache-2.0
// Finds the rule of a parameter by the template of its name.

import { closestOf } from '../model/model-error.js';
import type { Rule, RuleSet } from './rule-set.js';
import { rulesError } from './rules-error.js';

const compiled = new WeakMap<Rule, RegExp>();

/** The first rule that matches, or undefined; parameters without one follow `otherwise`. */
export function matchRule(rules: RuleSet, template: string): Rule | undefined {
  const found = rules.rules.find((rule) => expressionOf(rule).test(template));
  return found ?? (rules.otherwise === 'replicated' ? replicated : undefined);
}

/** @throws ERR_RULES naming the parameter and the closest rule when none matches. */
export function requireRule(rules: RuleSet, template: string, name: string): Rule {
  const rule = matchRule(rules, template);
  if (rule !== undefined) return rule;
  const near = closestOf(
    template,
    rules.rules.map(({ match }) => match),
  );
  const hint = near === undefined ? 'they are empty' : `the closest is ${JSON.stringify(near)}`;
  throw rulesError(`rules ${rules.name} have none for parameter ${JSON.stringify(name)}; ${hint}`, {
    help: 'Add a rule for it in a .json file, or "otherwise": "replicated" there.',
    field: name,
  });
}

const replicated: Rule = { match: '*', cut: 'replicated' };

function expressionOf(rule: Rule): RegExp {
  let expression = compiled.get(rule);
  if (expression === undefined) {
    const escaped = rule.match.split('*').map((text) => text.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'));
    expression = new RegExp(`^${escaped.join('.*')}$`, 's');
    compiled.set(rule, expression);
  }
  return expression;
}
