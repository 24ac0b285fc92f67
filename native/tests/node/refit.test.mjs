// SPDX-License-Identifier: Apache-2.0
// Refits through the addon, values and checks included: every rank's memory goes through uploads, moves and downloads. Needs `npx tsc -b`.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { singleDomain } from '../../../packages/core/dist/topology/presets.js';
import { World } from '../../../packages/core/dist/world/world.js';
import { modelFromJson, parseRuleSet, planRefit } from '../../../packages/m2n/dist/index.js';
import { ProgressMeter } from '../../../packages/m2n/dist/refit/progress-meter.js';
import { runRefit } from '../../../packages/m2n/dist/refit/run-refit.js';
import { hostValues } from '../../../packages/m2n/dist/refit/shard-values.js';
import { syntheticValues } from '../../../packages/m2n/dist/refit/values.js';
import { addon, take } from './addon.mjs';

/** Every cut, with extents that do not divide evenly. */
const model = modelFromJson(
  {
    embed: { shape: [101, 24], dtype: 'BF16' },
    up: { shape: [50, 24], dtype: 'BF16' },
    down: { shape: [24, 50], dtype: 'F32' },
    norm: { shape: [24], dtype: 'BF16' },
  },
  'small',
);
const rules = parseRuleSet({
  name: 'small',
  rules: [
    { match: 'embed', cut: 'vocab' },
    { match: 'up', cut: 'gate-up' },
    { match: 'down', cut: 'row' },
    { match: 'norm', cut: 'replicated' },
  ],
});

/** Runs `body` with a world of this addon's ranks. */
async function inWorld(ranks, body) {
  const timeoutMs = 20_000;
  const backend = addon.createBackend('0.0.0');
  const handles = take(await backend.runtime.createLocalRanks({ ranks, timeoutMs, workers: 0 }));
  const world = new World(backend, handles, singleDomain(ranks), timeoutMs);
  try {
    return await body(world);
  } finally {
    await world.dispose();
  }
}

const shapesOf = (plan) =>
  new Map(plan.tensors.map(({ name, shape, sourceDType }) => [name, { shape, dtype: sourceDType }]));
const options = { verify: true, repeat: 2, version: 7, meter: new ProgressMeter(undefined) };

for (const [where, shardsOf] of [['host', (plan) => hostValues(plan, syntheticValues(shapesOf(plan)))]]) {
  describe(`refits with values of the ${where}`, () => {
    for (const sides of [
      { from: 'tp=4', to: 'tp=2,dp=2' },
      { from: 'tp=3', to: 'tp=5' },
      { from: 'tp=4', to: 'tp=2', colocated: true },
      { from: 'tp=2', to: 'tp=3', cast: 'f8e4m3' },
    ]) {
      it(JSON.stringify(sides), async () => {
        const { plan } = await planRefit({ model, rules, ...sides });
        const result = await inWorld(plan.worldSize, (world) =>
          runRefit(world, plan, { ...options, shards: shardsOf(plan) }),
        );
        assert.equal(result.version, 8);
        assert.equal(result.repeats.length, 2);
        assert.ok(result.moveMs > 0 && result.stallMs >= result.moveMs);
      });
    }
  });
}
