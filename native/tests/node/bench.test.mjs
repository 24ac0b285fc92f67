// SPDX-License-Identifier: Apache-2.0
// `nccl-ext bench m2n` on the addon: gates, copies between GPUs, graphs and reshards follow one another as on a GPU. Needs `npx tsc -b`.
// What times the fakes give says nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';

process.env.FAKE_CUDA_DEVICES ??= '2';

const { benchDevice } = await import('../../../packages/cli/dist/bench/bench-device.js');
const { alone } = await import('../../../packages/cli/dist/bench/bench-world.js');
const { spreadRanks } = await import('../../../packages/cli/dist/bench/sides.js');
const { singleDomain } = await import('../../../packages/core/dist/topology/presets.js');
const { World } = await import('../../../packages/core/dist/world/world.js');
const { addon, take } = await import('./addon.mjs');

const bytes = 2 ** 20;
const timeoutMs = 20_000;

async function open(ranks, gpus, sms) {
  const backend = addon.createBackend('0.0.0');
  const devices = spreadRanks(ranks, gpus);
  const handles = take(
    await backend.runtime.createLocalRanks({ ranks, devices, timeoutMs, workers: 0, sms: sms?.senders ?? 0 }),
  );
  const world = new World(backend, handles, singleDomain(ranks), { timeoutMs, transferPath: 'auto' });
  return {
    ...alone,
    ...{ size: ranks, backend: 'fake', processes: 1, ranks: world.ranks, leads: true },
    run: (body) => world.run(body),
    gather: async (_topic, own) => own,
    dispose: () => world.dispose(),
  };
}

const bench = (ranks, gpus, settings) =>
  benchDevice({
    sizes: [bytes],
    settings,
    open: (sms) => open(ranks, gpus, sms),
    signal: new AbortController().signal,
    progress: { say: () => {} },
  });

const available = addon.probe({}).devices.length;

test('one GPU that two ranks share, with two SM budgets', { timeout: 120_000 }, async () => {
  const settings = [8, 16].map((count) => ({ senders: count, receivers: count }));
  const { rows, steps, device, ceiling } = await bench(2, 1, settings);
  assert.deepEqual([device.gpus, device.ranksPerGpu], [1, 2]);
  assert.match(ceiling.how, /device-to-device/);
  assert.deepEqual(
    rows.map(({ sms }) => sms.senders),
    [8, 16],
  );
  for (const { ms, aloneMs, copyBytes } of rows) {
    assert.ok(ms > 0 && aloneMs > 0);
    assert.equal(copyBytes, bytes);
  }
  assert.deepEqual(
    steps.map((step) => step.bytes),
    [2 ** 20, 2 ** 20, 8, 8],
  );
});

test('two GPUs, against copies between them', { skip: available < 2, timeout: 120_000 }, async () => {
  const { rows, device, ceiling } = await bench(2, 2, [undefined]);
  assert.deepEqual([device.gpus, device.ranksPerGpu], [2, 1]);
  assert.match(ceiling.how, /1 pair of GPUs/);
  // The one link carries all that is written.
  for (const { copyBytes, bytes: written } of rows) assert.equal(copyBytes, written);
});

test('kernels beside copy engines, each rank on its own GPU', {
  skip: available < 2,
  timeout: 120_000,
}, async () => {
  const { rows, steps } = await bench(2, 2, [undefined, { senders: 0, receivers: 0 }]);
  for (const list of [rows, steps.slice(0, 2)]) {
    assert.ok(list[0].sms.senders > 0);
    assert.deepEqual(list[1].sms, { senders: 0, receivers: 0 });
  }
});

test('copy engines are refused where ranks share a GPU', { timeout: 120_000 }, async () => {
  await assert.rejects(bench(2, 1, [{ senders: 0, receivers: 0 }]), ({ code, message }) => {
    assert.equal(code, 'ERR_UNSUPPORTED');
    assert.match(message, /2 ranks share a GPU/);
    return true;
  });
});
