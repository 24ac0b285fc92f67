// SPDX-License-Identifier: Apache-2.0
// The package says how it was built, and its addon loads on a machine without a driver. The addon is made by `npm run ci:native`.

import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

import { describe, expect, it } from 'vitest';
import { buildInfo, load, probe } from './index.js';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const built = existsSync(
  new URL(`../prebuilds/${process.platform}-${process.arch}/nccl_ext.node`, import.meta.url),
);
/** ERR_DRIVER_MISSING in core's errors/codes.ts, of which this package may import types only. */
const driverMissing = 37;
const driver = existsSync('/proc/driver/nvidia/version');

describe('@nccl-ext/cuda13', () => {
  it('knows its version', () => {
    expect(buildInfo.version).toBe(version);
  });

  it.skipIf(built)('names the file that is missing when it was not built for this platform', () => {
    expect(() => load()).toThrow(/nccl_ext\.node/);
  });

  it.skipIf(!built)('was built for CUDA 13', () => {
    expect(buildInfo).toMatchObject({ cudaMajor: 13, nodeApi: 9 });
  });

  it.skipIf(!built || driver)('finds no driver where there is none', () => {
    const found = probe();
    expect(found.driver).toMatchObject({ ok: false, error: { code: driverMissing } });
    if (!found.nccl.ok) expect(found.nccl.error.detail).not.toBe('');
  });

  it.skipIf(!built)('looks for NCCL where it is told to, and leaves the environment alone', async () => {
    const environment = { ...process.env };
    const options = { ncclLibrary: '/nowhere/libnccl.so.2', ncclHome: '/nowhere/else' };
    await load(options).dispose();
    expect(probe(options).nccl).toMatchObject({
      ok: false,
      error: { detail: expect.stringContaining('/nowhere/libnccl.so.2') },
    });
    expect({ ...process.env }).toEqual(environment);
  });

  it.skipIf(!built)('looks there in a worker thread as well', async () => {
    const code = `const { parentPort, workerData } = require('node:worker_threads');
import(workerData).then(({ probe }) => parentPort.postMessage(probe({ ncclLibrary: '/nowhere/libnccl.so.2' }).nccl.error.detail));`;
    const entry = new URL('../dist/index.js', import.meta.url).href;
    const worker = new Worker(code, { eval: true, workerData: entry });
    const [message] = await once(worker, 'message');
    expect(message).toContain('/nowhere/libnccl.so.2');
  });

  it.skipIf(!built || driver)('loads without a driver and says so when a rank is made', async () => {
    const backend = load();
    expect(backend.info).toMatchObject({ name: 'cuda13', version });
    const outcome = await backend.runtime.createLocalRanks({ ranks: 1, timeoutMs: 1000, workers: 0, sms: 0 });
    expect(outcome).toMatchObject({ ok: false, error: { code: driverMissing } });
    await backend.dispose();
  });
});
