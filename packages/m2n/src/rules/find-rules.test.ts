// SPDX-License-Identifier: Apache-2.0
// Rules are found by family, by fit, by name or in a file, and what is not known is named with what is close.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { modelFromJson, namedModel } from '../model/describe-model.js';
import { namedConfigs } from '../model/named-models.js';
import { findRules } from './find-rules.js';
import { matchRule } from './match-rule.js';
import { tensor } from './small-refits.test-util.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nccl-ext-rules-'));
});
afterAll(() => rm(folder, { recursive: true }));

describe('the rules that hold', () => {
  it('built-in rules cover every parameter of the models they are for, and are found by family or by fit', async () => {
    for (const name of Object.keys(namedConfigs)) {
      const model = namedModel(name);
      const rules = await findRules(model);
      const anonymous = { ...model, facts: { ...model.facts, family: undefined } };
      expect((await findRules(anonymous)).name).toBe(rules.name);
      for (const { template } of model.parameters) expect(matchRule(rules, template)).toBeDefined();
    }
  });

  it('come from a file', async () => {
    const file = join(folder, 'mine.json');
    await writeFile(file, JSON.stringify({ name: 'mine', rules: [{ match: 'w', cut: 'column' }] }));
    expect((await findRules(namedModel('Qwen3-0.6B'), file)).name).toBe('mine');
    await writeFile(file, '{');
    await expect(findRules(namedModel('Qwen3-0.6B'), file)).rejects.toMatchObject({ code: 'ERR_RULES' });
  });
});

describe('refused', () => {
  it('rules that nobody knows and models that no rules fit', async () => {
    await expect(findRules(namedModel('Qwen3-0.6B'), 'qwen4')).rejects.toThrow(
      /"qwen4" are not known; the closest are qwen3/,
    );
    await expect(findRules(namedModel('Qwen3-0.6B'), 'toString')).rejects.toMatchObject({
      code: 'ERR_RULES',
    });
    await expect(findRules(modelFromJson({ 'my.weight': tensor(1) }, 'm'))).rejects.toThrow(
      /no built-in rules fit m; qwen3 have none for my\.weight/,
    );
  });
});
