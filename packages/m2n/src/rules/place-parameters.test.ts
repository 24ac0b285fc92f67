// SPDX-License-Identifier: Apache-2.0
// Every rank of any parallelism holds what the definitions say, as each engine stores it.

import { dtypeBytes } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parallelism } from '../parallel/parallelism.js';
import { contentOf, expectedStorages, heldElements } from './placement-oracle.test-util.js';
import { refitTensors } from './refit-tensors.js';
import { cases } from './small-models.test-util.js';

const sizes = fc
  .record({
    pp: fc.integer({ min: 1, max: 3 }),
    dp: fc.integer({ min: 1, max: 3 }),
    cp: fc.integer({ min: 1, max: 2 }),
    tp: fc.integer({ min: 1, max: 5 }),
    pick: fc.nat(1000),
  })
  .map(({ pick, ...given }) => {
    const stage = given.dp * given.cp * given.tp;
    const divisors = Array.from({ length: stage }, (_, i) => i + 1).filter((n) => stage % n === 0);
    const ep = divisors[pick % divisors.length]!;
    const inner = divisors.filter((n) => (stage / ep) % n === 0);
    return parallelism({ ...given, ep, etp: inner[(pick * 13) % inner.length]! });
  });

describe('refitTensors', () => {
  it.each(cases)('places $rules.name as the definitions say, on every rank', ({ model, rules }) => {
    const view = fc.constantFrom('checkpoint', 'vllm');
    fc.assert(
      fc.property(sizes, sizes, view, view, fc.boolean(), (from, to, fromView, toView, colocated) => {
        const refit = refitTensors({
          model,
          rules,
          from: { parallelism: from, view: fromView },
          to: { parallelism: to, view: toView },
          colocated,
        });
        expect(refit.worldSize).toBe(colocated ? Math.max(from.ranks, to.ranks) : from.ranks + to.ranks);
        const first = colocated ? 0 : from.ranks;
        for (const [side, p, offset, sideView] of [
          ['sourceStorages', from, 0, fromView],
          ['destinationStorages', to, first, toView],
        ] as const) {
          for (let rank = 0; rank < p.ranks; rank++) {
            const expected = expectedStorages(rank, p, model, sideView);
            if (model.facts.tied && p.pp > 1 && Math.floor(rank / (p.ranks / p.pp)) === p.pp - 1) {
              const embedding = model.parameters[0]!;
              const { name: _name, ...rest } = embedding;
              const elements = heldElements({ ...rest, name: 'lm_head.weight' }, rank, p, model);
              if (elements !== undefined)
                expected.set(
                  'lm_head.weight',
                  elements.map((e) => `${embedding.name}#${e}`),
                );
            }
            const storages = refit[side](rank + offset);
            const found = new Map(storages.map((storage) => [storage.storage, contentOf(storage, model)]));
            expect([...found.keys()].sort()).toEqual([...expected.keys()].sort());
            for (const storage of storages) {
              const content = found.get(storage.storage)!;
              expect(content).toEqual(expected.get(storage.storage));
              expect(storage.bytes).toBe(content.length * dtypeBytes(storage.dtype));
              expect(storage.shape.reduce((a, b) => a * b, 1)).toBe(content.length);
            }
          }
        }
      }),
      { numRuns: 30 },
    );
  });
});
