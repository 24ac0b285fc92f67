// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { modelFromJson } from '../model/describe-model.js';
import { createPlan } from '../plan/create-plan.js';
import { builtInRules } from '../rules/built-in-rules.js';
import { refitTensors } from '../rules/refit-tensors.js';
import { joinSides } from './join-sides.js';
import { manifestOf } from './manifest-of.js';
import { parseManifest } from './manifest-schema.js';
import { manifestSide } from './manifest-side.js';
import { refitSide } from './refit-side.js';

const tensor = (...shape: number[]) => ({ shape, dtype: 'BF16' });
const layer = (i: number) => ({
  [`model.layers.${i}.self_attn.q_proj.weight`]: tensor(12, 6),
  [`model.layers.${i}.self_attn.k_proj.weight`]: tensor(6, 6),
  [`model.layers.${i}.self_attn.v_proj.weight`]: tensor(6, 6),
  [`model.layers.${i}.self_attn.o_proj.weight`]: tensor(6, 12),
  [`model.layers.${i}.mlp.gate.weight`]: tensor(3, 6),
  ...Object.fromEntries(
    [0, 1, 2].flatMap((e) => [
      [`model.layers.${i}.mlp.experts.${e}.gate_proj.weight`, tensor(7, 6)],
      [`model.layers.${i}.mlp.experts.${e}.up_proj.weight`, tensor(7, 6)],
      [`model.layers.${i}.mlp.experts.${e}.down_proj.weight`, tensor(6, 7)],
    ]),
  ),
});
const model = modelFromJson(
  {
    'model.embed_tokens.weight': tensor(11, 6),
    ...layer(0),
    ...layer(1),
    'model.norm.weight': tensor(6),
    'lm_head.weight': tensor(11, 6),
    __config__: { num_attention_heads: 6, num_key_value_heads: 3 },
  },
  'small',
);
const rules = builtInRules['qwen3-moe']!;
const sides = fc.constantFrom(
  'tp=1',
  'tp=2',
  'tp=3',
  'tp=4,pp=2',
  'dp=2,ep=2',
  'tp=2,dp=2,ep=2,etp=2',
  'tp=5',
);
const views = fc.constantFrom('checkpoint', 'vllm');

it('rules written as manifests plan to the same bytes as the rules, in any mixture of the two', () => {
  fc.assert(
    fc.property(sides, sides, views, views, fc.boolean(), (from, to, fromView, toView, colocated) => {
      const refit = refitTensors({
        model,
        rules,
        from: { parallelism: from, view: fromView },
        to: { parallelism: to, view: toView },
        colocated,
      });
      const through = (role: 'source' | 'destination') => {
        const document = parseManifest(JSON.parse(JSON.stringify(manifestOf(refit, role))), role);
        return manifestSide(document, role, { firstRank: refit[role].firstRank });
      };
      const expected = createPlan({
        tensors: refit.tensors,
        worldSize: refit.worldSize,
        cacheEntries: 0,
      }).totals;
      const mixtures = [
        joinSides(through('source'), through('destination')),
        joinSides(refitSide(refit, 'source'), through('destination')),
        joinSides(through('source'), refitSide(refit, 'destination')),
        joinSides(refitSide(refit, 'source'), refitSide(refit, 'destination')),
      ];
      for (const joined of mixtures) {
        expect(joined.worldSize).toBe(refit.worldSize);
        const totals = createPlan({ ...joined, cacheEntries: 0 }).totals;
        expect(totals.lowerBoundBytes).toBe(expected.lowerBoundBytes);
        expect(totals.wireBytes).toBe(expected.wireBytes);
        expect(totals.localBytes).toBe(expected.localBytes);
        for (let rank = 0; rank < refit.worldSize; rank++) {
          const bytes = (list: readonly { storage: string; bytes: number }[]) =>
            list.map(({ storage, bytes: size }) => `${storage} ${size}`).sort();
          expect(bytes(joined.sourceStorages(rank))).toEqual(bytes(refit.sourceStorages(rank)));
          expect(bytes(joined.destinationStorages(rank))).toEqual(bytes(refit.destinationStorages(rank)));
        }
      }
    }),
    { numRuns: 25 },
  );
});
