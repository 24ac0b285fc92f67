// SPDX-License-Identifier: Apache-2.0
// One rank per process, joined through rank 0. Fake device memory cannot be shared between processes, so this needs a GPU; the
// meetings themselves are tested by tests/host/meeting_test.cc.

import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { onGpu, runProgram } from './addon.mjs';

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const program = (rank, size, port) => `
  const backend = addon.createBackend('0.0.0');
  const { runtime } = backend;
  const rank = take(await runtime.joinRank({ rank: ${rank}, worldSize: ${size}, localRank: ${rank}, localWorldSize: ${size},
    address: '127.0.0.1', port: ${port}, timeoutMs: 30_000 }));
  const stream = take(runtime.createStream(rank));
  for (let round = 0; round < 20; round++) {
    runtime.enqueueBarrier(stream);
    take(await runtime.synchronize(stream));
  }
  const all = take(await runtime.exchange(rank, 'ranks', new Uint8Array([${rank}])));
  process.stdout.write(all.map((bytes) => bytes[0]).join());
  take(await runtime.disposeRank(rank));
  await backend.dispose();`;

describe('ranks of different processes', { skip: !onGpu && 'needs a GPU: NCCL_EXT_TEST_ADDON' }, () => {
  it('meet, pass barriers and exchange bytes', { timeout: 120_000 }, async () => {
    const port = await freePort();
    const ranks = await Promise.all([0, 1, 2].map((rank) => runProgram(program(rank, 3, port))));
    for (const { code, output } of ranks) assert.deepEqual([code, output], [0, '0,1,2']);
  });
});
