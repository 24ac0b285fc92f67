// SPDX-License-Identifier: Apache-2.0
// One rank per process, joined through rank 0; on a GPU, or on the fakes, whose device memory is files that processes share.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
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

// Each rank sends its eight bytes to the next one, into memory of the given kind; several executions, so that grants count.
const sending = (rank, size, port, kind) => `
  const [rank, size] = [${rank}, ${size}];
  const backend = addon.createBackend('0.0.0');
  const { runtime, m2n } = backend;
  const self = take(await runtime.joinRank({ rank, worldSize: size, localRank: rank, localWorldSize: size,
    address: '127.0.0.1', port: ${port}, timeoutMs: 30_000 }));
  const stream = take(runtime.createStream(self));
  const [source, destination] = [0, 1].map(() => take(runtime.allocate(self, 64, '${kind}')));
  const table = (peer) => ({
    length: 1, peer: Int32Array.of(peer), stage: Uint8Array.of(0), tensor: Int32Array.of(0), sourceTensor: Int32Array.of(0),
    sourceOffset: Float64Array.of(0), destinationOffset: Float64Array.of(8), inner: Float64Array.of(8),
    counts: Float64Array.of(1, 1, 1), sourceStrides: new Float64Array(3), destinationStrides: new Float64Array(3),
    transform: Uint16Array.of(0),
  });
  const [next, previous] = [(rank + 1) % size, (rank + size - 1) % size];
  const bound = (buffer) => ({ buffer: Float64Array.of(buffer), byteOffset: Float64Array.of(0) });
  const transfer = take(await m2n.prepareTransfer(self, {
    program: { rank, size, digest: 'ring', sends: table(next), receives: table(previous),
      receivePeers: Int32Array.of(previous), forwardPeers: new Int32Array(0) },
    sources: bound(source), destinations: bound(destination), verify: true,
  }));
  const seen = new Uint8Array(8);
  for (let round = 0; round < 5; round++) {
    runtime.enqueueUpload(stream, source, 0, new Uint8Array(8).fill(10 * round + rank));
    m2n.enqueueTransfer(transfer, stream);
    runtime.enqueueDownload(stream, seen, destination, 8);
    take(await runtime.synchronize(stream));
    if (seen.some((byte) => byte !== 10 * round + previous)) process.stdout.write('round ' + round + ': ' + seen.join());
  }
  process.stdout.write(String(m2n.progressOf(transfer).completed));
  take(await m2n.disposeTransfer(transfer));
  take(await runtime.disposeRank(self));
  await backend.dispose();`;

const joining = (rank, port, options) => `
  const backend = addon.createBackend('0.0.0', ${JSON.stringify(options)});
  const { error } = await backend.runtime.joinRank({ rank: ${rank}, worldSize: 2, localRank: 0, localWorldSize: 1,
    address: '127.0.0.1', port: ${port}, timeoutMs: 10_000, sms: 0 });
  process.stdout.write(JSON.stringify([error.code, error.rank, error.peer, error.expected, error.seen]));
  await backend.dispose();`;

describe('ranks with different versions of NCCL', { skip: onGpu && 'needs the fakes' }, () => {
  it('are refused on both sides, by name, before NCCL is called', { timeout: 60_000 }, async () => {
    const port = await freePort();
    const good = process.env.NCCL_EXT_NCCL_LIBRARY;
    const libraries = [good, good.replace('nccl-good', 'nccl-new')];
    const ended = await Promise.all(
      libraries.map((ncclLibrary, rank) => runProgram(joining(rank, port, { ncclLibrary }))),
    );
    const ncclVersion = 39;
    for (const [rank, { code, output }] of ended.entries()) {
      assert.equal(code, 0, output);
      assert.deepEqual(JSON.parse(output), [ncclVersion, rank, 1, '2.30.7', '2.40.1']);
    }
  });
});

describe('ranks of different processes', () => {
  // The fake NCCL's ranks of several processes meet in a folder; its CUDA IPC stays within one.
  const folder = onGpu ? undefined : mkdtempSync(join(tmpdir(), 'fake-nccl-'));
  before(() => {
    if (folder !== undefined) process.env.FAKE_NCCL_FOLDER = folder;
  });
  after(() => {
    if (folder !== undefined) rmSync(folder, { recursive: true });
  });

  for (const kind of onGpu ? ['symmetric', 'plain'] : ['symmetric']) {
    it(`transfer into each other's ${kind} memory`, { timeout: 120_000 }, async () => {
      const port = await freePort();
      const ranks = await Promise.all([0, 1, 2].map((rank) => runProgram(sending(rank, 3, port, kind))));
      for (const { code, output } of ranks) assert.deepEqual([code, output], [0, '5']);
    });
  }

  it('meet, pass barriers and exchange bytes', { timeout: 120_000 }, async () => {
    const port = await freePort();
    const ranks = await Promise.all([0, 1, 2].map((rank) => runProgram(program(rank, 3, port))));
    for (const { code, output } of ranks) assert.deepEqual([code, output], [0, '0,1,2']);
  });
});
