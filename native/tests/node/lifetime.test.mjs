// SPDX-License-Identifier: Apache-2.0
// Backends end with their environments, hold the process only while somebody waits, and leave nothing behind.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { addonPath, onGpu, runProgram, withRanks } from './addon.mjs';

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
