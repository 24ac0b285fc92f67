// SPDX-License-Identifier: Apache-2.0
// probe() describes driver, GPUs and NCCL without making a rank.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { onGpu, runProgram } from './addon.mjs';

async function probed(before = '') {
  const { code, output } = await runProgram(`${before}
    process.stdout.write(JSON.stringify(addon.probe()));`);
  assert.equal(code, 0, output);
  return JSON.parse(output);
}

describe('probe', () => {
  it('gives driver, NCCL and each GPU', async () => {
    const { driver, devices, nccl } = await probed();
    assert.ok(driver.ok && nccl.ok);
    assert.match(driver.value.cuda, /^\d+\.\d+$/);
    assert.match(nccl.value.version, /^\d+\.\d+\.\d+$/);
    assert.equal(devices.length, driver.value.devices);
    for (const [index, device] of devices.entries()) {
      assert.equal(device.index, index);
      assert.ok(device.name.length > 0);
      assert.match(device.uuid, /^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      assert.match(device.computeCapability, /^\d+\.\d+$/);
      assert.ok(device.multiprocessors > 0 && device.memoryBytes > 2 ** 30);
      assert.ok(device.peers.every((peer) => peer !== index && peer in devices));
    }
  });

  it('says which GPUs reach each other', { skip: onGpu && 'needs the fake driver' }, async () => {
    const { devices } = await probed("process.env.FAKE_CUDA_DEVICES = '3';");
    assert.deepEqual(
      devices.map(({ peers }) => peers),
      [[1], [0], []],
    );
  });

  it('lists no GPU where the driver finds none', { skip: onGpu && 'needs the fake driver' }, async () => {
    const { driver, devices } = await probed("process.env.FAKE_CUDA_DEVICES = '0';");
    assert.equal(driver.ok, false);
    assert.deepEqual(devices, []);
  });
});
