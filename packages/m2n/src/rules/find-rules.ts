// SPDX-License-Identifier: Apache-2.0
// Finds the rules for a model: those that are named, those of a file, or those of the model's family.

import { readFile } from 'node:fs/promises';
import type { ModelDescription } from '../model/model-description.js';
import { closestOf } from '../model/model-error.js';
import { builtInRules, rulesByFamily } from './built-in-rules.js';
import { matchRule } from './match-rule.js';
import { parseRuleSet, type RuleSet } from './rule-set.js';
import { rulesError } from './rules-error.js';

/**
 * The rules by name (`qwen3`, `qwen3-moe`, `deepseek-v3`) or from a `.json` file; without either those of the model's
 * family or, if that is not known, the first built-in ones that have a rule for every parameter.
 *
 * @throws ERR_RULES when the name is not known, the file is malformed, or no built-in rules fit.
 * @example
 * ```ts
 * const rules = await findRules(namedModel('Kimi-K2-Instruct'));
 * rules.name; // 'deepseek-v3'
 * ```
 */
export async function findRules(model: ModelDescription, nameOrFile?: string): Promise<RuleSet> {
  if (nameOrFile?.endsWith('.json')) return readRules(nameOrFile);
  const name = nameOrFile ?? rulesByFamily[model.facts.family ?? ''] ?? fittingRules(model);
  const rules = Object.hasOwn(builtInRules, name) ? builtInRules[name] : undefined;
  if (rules !== undefined) return rules;
  const known = Object.keys(builtInRules);
  throw rulesError(`rules ${JSON.stringify(name)} are not known; the closest are ${closestOf(name, known)}`, {
    help: `Known are ${known.join(', ')}; or give a .json file.`,
    field: 'rules',
  });
}

async function readRules(file: string): Promise<RuleSet> {
  let json: unknown;
  try {
    json = JSON.parse(await readFile(file, 'utf8'));
  } catch (cause) {
    throw rulesError(`${file} cannot be read as JSON (${(cause as Error).message})`, {
      field: 'rules',
      cause,
    });
  }
  return parseRuleSet(json, file);
}

function fittingRules(model: ModelDescription): string {
  const templates = new Set(model.parameters.map(({ template }) => template));
  let best: { name: string; left: string[] } | undefined;
  for (const [name, rules] of Object.entries(builtInRules)) {
    const left = [...templates].filter((template) => matchRule(rules, template) === undefined);
    if (left.length === 0) return name;
    if (best === undefined || left.length < best.left.length) best = { name, left };
  }
  throw rulesError(`no built-in rules fit ${model.name}; ${best!.name} have none for ${best!.left[0]}`, {
    help: 'Give rules in a .json file.',
    field: 'rules',
  });
}
