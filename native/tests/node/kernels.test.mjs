// SPDX-License-Identifier: Apache-2.0
// Modules, launches and peer tables through the binding, on the fake driver: its PTX names kernels that run on the host
// (tests/fake/fake_modules.cc). A real driver has the smoke kernels instead (tests/gpu/smoke.test.mjs).

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { onGpu, take, withRanks } from './addon.mjs';

const codes = { invalidArgument: 1, disposed: 3, timeout: 5, busy: 17, module: 42, kernel: 43 };
const ptx = new TextEncoder().encode(`.version 8.4
//kernel store 1024 0 0:8 8:8
//kernel complain 1024 0 0:32 32:8
//kernel await_flag 256 1024 0:8 8:8 16:32
`);

/** One thread whose parameters are `words`, 64 bits each. */
function launchOf(words, more = {}) {
  const parameters = new Uint8Array(BigUint64Array.from(words).buffer);
  const offsets = Int32Array.from(words, (_, i) => 8 * i);
  return {
    grid: [1, 1, 1],
    block: [1, 1, 1],
    sharedBytes: 0,
    parameters,
    offsets,
    guardOffset: -1,
    buffers: [],
    ...more,
  };
}

describe('kernels of users', { skip: onGpu && 'the fake driver only' }, () => {
  it('are loaded, launched and unloaded', async () => {
    await withRanks(1, async (runtime, [rank]) => {
      const stream = take(runtime.createStream(rank));
      const buffer = take(runtime.allocate(rank, 16, 'plain'));
      const module = take(await runtime.loadModule(rank, ptx));
      const kernel = take(runtime.kernelOf(module, 'store'));
      const launch = launchOf([runtime.bufferAddress(buffer) + 8n, 0x0102030405060708n], {
        buffers: [buffer],
      });
      assert.equal(runtime.launchKernel(stream, kernel, launch), 0);
      const down = new Uint8Array(8);
      assert.equal(runtime.enqueueDownload(stream, down, buffer, 8), 0);
      assert.ok((await runtime.synchronize(stream)).ok);
      assert.deepEqual([...down], [8, 7, 6, 5, 4, 3, 2, 1]);
      assert.equal(runtime.unloadModule(module), 0);
      assert.equal(runtime.launchKernel(stream, kernel, launch), codes.disposed);
    });
  });

  it('are refused with the parameter that differs', async () => {
    await withRanks(1, async (runtime, [rank]) => {
      const stream = take(runtime.createStream(rank));
      assert.equal((await runtime.loadModule(rank, new Uint8Array(50))).error.code, codes.module);
      assert.equal((await runtime.loadModule(rank, 'text')).error.code, codes.invalidArgument);
      const module = take(await runtime.loadModule(rank, ptx));
      assert.match(runtime.kernelOf(module, 'nobody').error.detail, /'nobody'; it has await_flag/);
      const kernel = take(runtime.kernelOf(module, 'store'));
      for (const [change, code] of [
        [{ grid: [1, 1] }, codes.invalidArgument],
        [{ block: 'x' }, codes.invalidArgument],
        [{ sharedBytes: 1e9 }, codes.module],
        [{ offsets: new Int32Array([0]) }, codes.module],
        [{ guardOffset: 4 }, codes.invalidArgument],
        [{ buffers: [rank] }, codes.invalidArgument],
      ])
        assert.equal(
          runtime.launchKernel(stream, kernel, launchOf([0n, 0n], change)),
          code,
          JSON.stringify(change),
        );
    });
  });

  it('wait with a deadline, and report what they find', async () => {
    await withRanks(
      2,
      async (runtime, [rank]) => {
        const stream = take(runtime.createStream(rank));
        const flag = take(runtime.allocate(rank, 8, 'plain'));
        assert.equal(runtime.enqueueFill(stream, flag, 0, 8, 0), 0);
        const module = take(await runtime.loadModule(rank, ptx));
        const own = launchOf([0n, 0n, 0n, 0n, 43n], { offsets: new Int32Array([0, 32]), guardOffset: 0 });
        assert.equal(runtime.launchKernel(stream, take(runtime.kernelOf(module, 'complain')), own), 0);
        const { error } = await runtime.synchronize(stream);
        assert.deepEqual(
          [error.code, error.rank, error.peer, error.expected, error.seen],
          [codes.kernel, 0, 1, 7, 8],
        );
        const words = [runtime.bufferAddress(flag), 9n, 0n, 0n, 0n, 0n];
        const late = launchOf(words, {
          offsets: new Int32Array([0, 8, 16]),
          guardOffset: 16,
          buffers: [flag],
        });
        assert.equal(runtime.launchKernel(stream, take(runtime.kernelOf(module, 'await_flag')), late), 0);
        assert.equal(runtime.unloadModule(module), codes.busy);
        const outcome = await runtime.synchronize(stream);
        assert.deepEqual([outcome.error.code, outcome.error.peer], [codes.timeout, 1]);
      },
      200,
    );
  });
});

describe('peers of windows', () => {
  it('have addresses by rank, one of them their own', async () => {
    await withRanks(2, async (runtime, ranks) => {
      const buffers = ranks.map((rank) => take(runtime.allocate(rank, 4096, 'symmetric')));
      const windows = await Promise.all(ranks.map((rank, i) => runtime.registerWindow(rank, buffers[i])));
      for (const window of windows) {
        const { table, addresses } = take(runtime.windowPeers(take(window)));
        assert.equal(typeof table, 'bigint');
        assert.equal(addresses.length, 2);
        for (const address of addresses) assert.notEqual(address, 0n);
      }
      assert.equal(runtime.windowPeers(ranks[0]).error.code, codes.invalidArgument);
    });
  });
});
