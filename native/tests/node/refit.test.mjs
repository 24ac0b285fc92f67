// SPDX-License-Identifier: Apache-2.0
// Refits through the addon, values and checks included: every rank's memory goes through uploads, moves and downloads. Needs `npx tsc -b`.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { castArray, dtypeBytes } from '../../../node_modules/@nccl-ext/core/dist/index.js';
import { singleDomain } from '../../../node_modules/@nccl-ext/core/dist/topology/presets.js';
import { World } from '../../../node_modules/@nccl-ext/core/dist/world/world.js';
import { modelFromJson, parseRuleSet, planRefit } from '../../../node_modules/@nccl-ext/m2n/dist/index.js';
import { deviceValues } from '../../../node_modules/@nccl-ext/m2n/dist/refit/device-values/device-values.js';
import { hostAccess } from '../../../node_modules/@nccl-ext/m2n/dist/refit/host-access.js';
import { loadSources } from '../../../node_modules/@nccl-ext/m2n/dist/refit/load-sources.js';
import { ProgressMeter } from '../../../node_modules/@nccl-ext/m2n/dist/refit/progress-meter.js';
import { allocateRanks } from '../../../node_modules/@nccl-ext/m2n/dist/refit/rank-memory.js';
import { runRefit } from '../../../node_modules/@nccl-ext/m2n/dist/refit/run-refit.js';
import { hostValues } from '../../../node_modules/@nccl-ext/m2n/dist/refit/shard-values.js';
import { syntheticValues } from '../../../node_modules/@nccl-ext/m2n/dist/refit/values.js';
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

/** Contiguous shards only. */
const wholeRows = parseRuleSet({
  name: 'rows',
  rules: ['embed', 'up', 'down', 'norm'].map((match) => ({ match, cut: 'vocab' })),
});

/** Runs `body` with a world of this addon's ranks. */
async function inWorld(ranks, body) {
  const timeoutMs = 20_000;
  const backend = addon.createBackend('0.0.0');
  const handles = take(await backend.runtime.createLocalRanks({ ranks, timeoutMs, workers: 0 }));
  const world = new World(backend, handles, singleDomain(ranks), { timeoutMs, transferPath: 'auto' });
  try {
    return await body(world);
  } finally {
    await world.dispose();
  }
}

const valuesOf = (plan) =>
  syntheticValues(
    new Map(plan.tensors.map(({ name, shape, sourceDType }) => [name, { shape, dtype: sourceDType }])),
  );
const onHost = (plan) => hostValues(plan, valuesOf(plan));
const onDevice = (plan) => deviceValues(plan, valuesOf(plan));
/** Made by one, compared by the other: they agree on every byte. */
const loadedBy = (one, other) => (plan) => ({ ...other(plan), load: one(plan).load });
const options = { verify: true, check: true, repeat: 2, version: 7, meter: new ProgressMeter(undefined) };

for (const [where, shardsOf] of Object.entries({
  'made and compared by the host': onHost,
  'made and compared by the GPU': onDevice,
  'made by the GPU, compared by the host': loadedBy(onDevice, onHost),
  'made by the host, compared by the GPU': loadedBy(onHost, onDevice),
})) {
  describe(`refits with values ${where}`, () => {
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

describe('refits by copy engines alone', () => {
  it('move whole rows', async () => {
    const { plan } = await planRefit({ model, rules: wholeRows, from: 'tp=2', to: 'tp=3' });
    const result = await inWorld(plan.worldSize, (world) =>
      runRefit(world, plan, { ...options, transferSms: 0, shards: onDevice(plan) }),
    );
    assert.ok(result.verified && result.moveMs > 0);
  });

  it('are refused where they cannot convert', async () => {
    const { plan } = await planRefit({ model, rules: wholeRows, from: 'tp=2', to: 'tp=3', cast: 'f16' });
    const run = inWorld(plan.worldSize, (world) =>
      runRefit(world, plan, { ...options, transferSms: 0, shards: onDevice(plan) }),
    );
    await assert.rejects(run, ({ code, message }) => {
      assert.equal(code, 'ERR_UNSUPPORTED');
      assert.match(message, /copy engines/);
      return true;
    });
  });
});

describe('values of the GPU', () => {
  for (const cast of [undefined, 'f16'])
    it(`find bytes that differ, in memory ${cast ?? 'as it is'}, and name the first`, async () => {
      const { plan } = await planRefit({ model, rules, from: 'tp=2', to: 'tp=2', cast });
      await inWorld(plan.worldSize, async (world) => {
        const shards = onDevice(plan);
        const ranks = allocateRanks(world, plan);
        const work = { onBytes: () => {}, signal: undefined };
        // Destinations as a transfer leaves them.
        const filled = ranks.map((rank) => ({ ...rank, sources: rank.destinations }));
        if (cast === undefined) await shards.load(filled, work);
        else await castedDestinations(plan, filled);
        await shards.check(ranks, work);
        const { stream, destinations } = ranks[3];
        const place = destinations.bindings.down.byteOffset + 6;
        stream.fill(destinations.buffer, 0x55, place, 1);
        stream.fill(destinations.buffer, 0xaa, place + 31, 1);
        await assert.rejects(shards.check(ranks, work), ({ code, rank, field, message }) => {
          assert.deepEqual([code, rank, field], ['ERR_VERIFY', 3, 'down']);
          assert.match(message, /In all 2 bytes of the rank differ/);
          return true;
        });
      });
    });
});

/** What a move with a cast writes, by the host. */
async function castedDestinations(plan, ranks) {
  for (const { stream, destinations } of ranks) {
    const values = valuesOf(plan);
    const casting = {
      ...values,
      async read(name, dims, target) {
        const { sourceDType, destinationDType } = plan.tensors.find((tensor) => tensor.name === name);
        const read = new Uint8Array((target.length / dtypeBytes(destinationDType)) * dtypeBytes(sourceDType));
        await values.read(name, dims, read);
        if (sourceDType === destinationDType) target.set(read);
        else castArray(sourceDType, read, destinationDType, target);
      },
    };
    await loadSources(destinations, hostAccess(stream), casting, () => {}, undefined);
  }
}
