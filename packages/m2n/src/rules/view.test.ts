// SPDX-License-Identifier: Apache-2.0
// Views that do not exist, or join and split what cannot be, are refused by name.

import { describe, expect, it } from 'vitest';
import { refusal } from '../refusal.test-util.js';
import type { RuleSet } from './rule-set.js';
import { refit, rulesOf, tensor } from './small-refits.test-util.js';

describe('refused', () => {
  it('views that do not exist, or join and split what cannot be', () => {
    const view = (
      entries: RuleSet['views'],
      rest: Partial<RuleSet> = {},
      model: Record<string, unknown> = { a: tensor(4, 2), b: tensor(4, 3) },
    ) =>
      refusal(() =>
        refit(model, rulesOf({ rules: [{ match: '*', cut: 'column' }], views: entries, ...rest }), {
          from: { parallelism: 'tp=2', view: 'v' },
        }),
      );
    expect(view({ w: [] }).message).toMatch(/no view "v"; the closest is w/);
    expect(view({ v: [{ from: ['a', 'c'], into: ['ac'] }] }).message).toMatch(
      /storage "ac" joins parameter "c", which the model lacks/,
    );
    expect(view({ v: [{ from: ['a', 'b'], into: ['ab'] }] }).message).toMatch(
      /"ab" cannot join the rows of "a", "b"/,
    );
    expect(view({ v: [{ from: ['a'], into: ['x', 'y'] }] }).message).toMatch(
      /"a" is split into 2 storages, but its rule gives 1/,
    );
    const stacked = { rules: [{ match: '*', cut: 'gate-up', stacked: true } as const] };
    const experts = { a: tensor(2, 4, 2), b: tensor(2, 4, 2) };
    expect(view({ v: [{ from: ['a'], into: ['x', 'y'] }] }, stacked, experts).message).toMatch(
      /stacked experts cannot be/,
    );
    expect(view({ v: [{ from: ['a', 'b'], into: ['x'] }] }, stacked, experts).message).toMatch(/cannot join/);
    expect(view({ v: [] }, stacked, { a: tensor() }).message).toMatch(/no dimension of experts/);
  });

  it('a joined storage whose members change their shapes between layers', () => {
    const rules = rulesOf({
      rules: [{ match: '*', cut: 'column' }],
      views: { v: [{ from: ['layers.{layer}.a', 'layers.{layer}.b'], into: ['layers.{layer}.ab'] }] },
    });
    const model = {
      'layers.0.a': tensor(4),
      'layers.0.b': tensor(4),
      'layers.1.a': tensor(6),
      'layers.1.b': tensor(4),
    };
    const result = refit(model, rules, { from: { parallelism: 'tp=1', view: 'v' } });
    const error = refusal(() => result.sourceStorages(0));
    expect(error.code).toBe('ERR_RULES');
    expect(error.message).toMatch(
      /"layers\.1\.ab" has "layers\.1\.b" at byte 8, but the pieces before end at 12/,
    );
  });
});
