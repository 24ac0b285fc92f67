// SPDX-License-Identifier: Apache-2.0
// Backends end with their environments, hold the process only while somebody waits, and leave nothing behind.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { addonPath, onGpu, runProgram, take, withRanks } from './addon.mjs';

const twoRanks = `
  const { runtime } = addon.createBackend('0.0.0');
  const ranks = take(await runtime.createLocalRanks({ ranks: 2, timeoutMs: TIMEOUT, workers: 0 }));
  const stream = take(runtime.createStream(ranks[0]));
`;

const program = (timeoutMs, body) => runProgram(twoRanks.replace('TIMEOUT', timeoutMs) + body);

describe('the process', () => {
  it('ends by itself when a backend is idle', async () => {
    const { code, output } = await program(60_000, '');
    assert.deepEqual([code, output], [0, '']);
  });

  it('stays while a promise is pending', async () => {
    const { code, output } = await program(
      300,
      `runtime.enqueueBarrier(stream); runtime.synchronize(stream).then(({ error }) => process.stdout.write(String(error.code)));`,
    );
    assert.deepEqual([code, output], [0, '5']);
  });

  it('may exit with work in flight, promptly and without a crash', async () => {
    const { code, signal, output, milliseconds } = await program(
      60_000,
      `runtime.enqueueBarrier(stream); runtime.synchronize(stream); runtime.exchange(ranks[1], 'never', new Uint8Array());
       setTimeout(() => process.exit(3), 50);`,
    );
    assert.deepEqual([code, signal, output], [3, null, '']);
    assert.ok(milliseconds < 10_000);
  });
});

describe('worker threads', () => {
  const body = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { createBackend } = require(workerData.addonPath);
    const { runtime } = createBackend('0.0.0');
    (async () => {
      const { value: ranks } = await runtime.createLocalRanks({ ranks: 2, timeoutMs: 60_000, workers: 0 });
      const streams = ranks.map((rank) => runtime.createStream(rank).value);
      for (let round = 0; round < 50; round++) {
        for (const stream of streams) runtime.enqueueBarrier(stream);
        for (const stream of streams) if (!(await runtime.synchronize(stream)).ok) throw new Error('barrier');
      }
      runtime.enqueueBarrier(streams[0]);
      runtime.synchronize(streams[0]);
      parentPort.postMessage('busy');
    })();`;

  it('each own a world at the same time, which they split and dispose', { timeout: 30_000 }, async () => {
    const whole = `
    const { parentPort, workerData } = require('node:worker_threads');
    const backend = require(workerData.addonPath).createBackend('0.0.0');
    const { runtime } = backend;
    const take = ({ value, error }) => { if (error) throw new Error(error.detail); return value; };
    (async () => {
      for (let world = 0; world < 3; world++) {
        const ranks = take(await runtime.createLocalRanks({ ranks: 3, timeoutMs: 20_000, workers: 0, sms: 0 }));
        const parts = (await Promise.all(ranks.map((rank, i) => runtime.splitRank(rank, i % 2, 0)))).map(take);
        const all = [ranks, [parts[0].handle, parts[2].handle]];
        for (const group of all) {
          const streams = group.map((rank) => take(runtime.createStream(rank)));
          for (let round = 0; round < 20; round++) for (const stream of streams) runtime.enqueueBarrier(stream);
          for (const stream of streams) take(await runtime.synchronize(stream));
        }
        for (const rank of ranks) take(await runtime.disposeRank(rank));
      }
      await backend.dispose();
      parentPort.postMessage('done');
    })();`;
    const workers = [0, 1, 2].map(() => new Worker(whole, { eval: true, workerData: { addonPath } }));
    const ends = workers.map(
      (worker) => new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject)),
    );
    assert.deepEqual(await Promise.all(ends), [0, 0, 0]);
  });

  it('each own a backend, and are terminated with work in flight', { timeout: 30_000 }, async () => {
    const workers = [0, 1, 2].map(() => new Worker(body, { eval: true, workerData: { addonPath } }));
    await Promise.all(
      workers.map(
        (worker) => new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject)),
      ),
    );
    await Promise.all(workers.map((worker) => worker.terminate()));
  });
});

describe('the memory of a disposed rank', () => {
  it('comes back before the other ranks are disposed, unless it is a window', async () => {
    await withRanks(2, async (runtime, ranks) => {
      const bytes = 1 << 20;
      const windows = ranks.map((rank) => {
        take(runtime.allocate(rank, bytes, 'plain'));
        take(runtime.allocate(rank, bytes, 'symmetric'));
        return runtime.registerWindow(rank, take(runtime.allocate(rank, bytes, 'symmetric')));
      });
      for (const window of await Promise.all(windows)) take(window);
      assert.equal(runtime.memoryUsage().reservedBytes, 6 * bytes);
      take(await runtime.disposeRank(ranks.shift()));
      const deadline = performance.now() + 10_000;
      while (runtime.memoryUsage().reservedBytes > 4 * bytes && performance.now() < deadline)
        await new Promise((resolve) => setTimeout(resolve, 5));
      assert.equal(runtime.memoryUsage().reservedBytes, 4 * bytes);
      assert.equal(runtime.memoryUsage().allocatedBytes, 3 * bytes);
    });
  });
});

describe('many rounds', () => {
  // A round takes about a second with the real NCCL.
  const [warmUp, rounds] = onGpu ? [10, 20] : [100, 300];

  it('of create and dispose keep descriptors and memory flat', { timeout: 120_000 }, async () => {
    const round = () =>
      withRanks(2, async (runtime, ranks) => {
        for (const rank of ranks) {
          const { value: stream } = runtime.createStream(rank);
          const { value: buffer } = runtime.allocate(rank, 100_000, 'symmetric');
          runtime.enqueueFill(stream, buffer, 0, 100_000, 1);
          await runtime.synchronize(stream);
        }
      });
    const measure = () => {
      global.gc?.();
      return { rss: process.memoryUsage().rss, descriptors: readdirSync('/proc/self/fd').length };
    };
    for (let i = 0; i < warmUp; i++) await round();
    const before = measure();
    for (let i = 0; i < rounds; i++) await round();
    const after = measure();
    assert.equal(after.descriptors, before.descriptors);
    assert.ok(after.rss - before.rss < 32 * 2 ** 20, `RSS grew by ${after.rss - before.rss} bytes`);
  });
});
