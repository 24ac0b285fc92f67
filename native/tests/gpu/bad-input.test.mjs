// SPDX-License-Identifier: Apache-2.0
// Devices, streams, disposed objects and machines that users can get wrong on GPUs, through the public API: each case is a typed error at
// once, and the world works on. Memory: bad-memory.test.mjs.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { localWorld } from '@nccl-ext/core';
import { gpus, MiB, refused, shared } from './refusals.mjs';

describe('a device that', () => {
  it('is not there', async () => {
    for (const devices of [[gpus], [-1], [0, 0]])
      await assert.rejects(localWorld({ ranks: 1, backend: 'cuda', devices }), (error) => {
        assert.match(error.code, /^ERR_/);
        return true;
      });
  });

  it('has not so much memory says how much it has, and gives what fits', async () => {
    const { comm } = shared;
    for (const kind of ['plain', 'symmetric']) {
      const bytes = 2 ** 45;
      refused(() => comm.allocate(bytes, kind), 'ERR_OUT_OF_MEMORY', new RegExp(`${bytes} bytes.*free`));
      await comm.allocate(MiB, kind).dispose();
    }
  });
});

describe('a stream that', () => {
  it('is null, a default stream, or of another communicator', () => {
    const { comm, peer, stream } = shared;
    for (const wrong of [0n, 1n, 2n, null, 5]) refused(() => comm.wrapStream(wrong), 'ERR_INVALID_ARGUMENT');
    const theirs = peer.createStream();
    const buffer = comm.allocate(64);
    refused(() => theirs.fill(buffer, 0), 'ERR_FOREIGN_OBJECT');
    refused(() => theirs.record(comm.createEvent()), 'ERR_FOREIGN_OBJECT');
    const graph = stream.capture(() => stream.fill(buffer, 1));
    refused(() => theirs.launch(graph), 'ERR_FOREIGN_OBJECT');
  });

  it('is full', async () => {
    const { comm, peer } = shared;
    const full = comm.createStream();
    const other = peer.createStream();
    const buffer = comm.allocate(64);
    const graph = full.capture(() => full.fill(buffer, 1));
    for (let i = 0; i < 256; i++) full.barrier();
    refused(() => full.barrier(), 'ERR_QUEUE_FULL');
    refused(() => full.fill(buffer, 1), 'ERR_QUEUE_FULL');
    refused(() => full.upload(buffer, new Uint8Array(64)), 'ERR_QUEUE_FULL');
    refused(() => full.launch(graph), 'ERR_QUEUE_FULL');
    assert.equal(full.queued, 256);
    for (let i = 0; i < 256; i++) other.barrier();
    await Promise.all([full.synchronize(), other.synchronize()]);
    full.launch(graph);
    await full.synchronize();
  });

  it('records is not synchronized, and records nothing twice', () => {
    const { comm, stream } = shared;
    const graph = stream.capture(() => {
      refused(() => stream.capture(() => {}), 'ERR_INVALID_STATE');
      stream.fill(comm.allocate(16), 1);
    });
    assert.ok(graph);
  });
});

describe('after dispose', () => {
  it('every object refuses', async () => {
    const { comm, stream } = shared;
    const [own, event, buffer] = [comm.createStream(), comm.createEvent(), comm.allocate(64)];
    const graph = own.capture(() => own.fill(buffer, 1));
    const wrapped = comm.wrapMemory(buffer.address, 64);
    for (const object of [graph, wrapped, event, own, buffer]) await object.dispose();
    refused(() => stream.launch(graph), 'ERR_DISPOSED');
    refused(() => stream.fill(wrapped, 0), 'ERR_DISPOSED');
    refused(() => stream.record(event), 'ERR_DISPOSED');
    refused(() => own.barrier(), 'ERR_DISPOSED');
    refused(() => own.handle, 'ERR_DISPOSED');
    refused(() => buffer.address, 'ERR_DISPOSED');
  });

  it('so does a communicator, and everything that it made', async () => {
    const other = await localWorld({ ranks: 1, backend: 'cuda' });
    const [one] = other.ranks;
    const [own, buffer] = [one.createStream(), one.allocate(64)];
    await other.dispose();
    refused(() => one.allocate(1), 'ERR_DISPOSED');
    refused(() => one.createStream(), 'ERR_DISPOSED');
    refused(() => own.fill(buffer, 0), 'ERR_DISPOSED');
    await assert.rejects(one.agree('late', {}), { code: 'ERR_DISPOSED' });
  });
});

describe('a machine that lacks', () => {
  const codeOf = async (env) => {
    const program = `import { localWorld } from '@nccl-ext/core';
      try { await (await localWorld({ ranks: 1, backend: 'cuda' })).dispose(); process.stdout.write('made'); }
      catch ({ code, message }) { process.stdout.write(code + ' ' + message); }`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    await new Promise((resolve) => child.on('close', resolve));
    return output;
  };

  it('a GPU that this process may see', async () => {
    assert.match(await codeOf({ CUDA_VISIBLE_DEVICES: '' }), /^ERR_DRIVER_MISSING .*no GPU/);
  });

  it('NCCL, or has something else in its place', async () => {
    assert.match(await codeOf({ NCCL_EXT_NCCL_LIBRARY: '/nowhere/libnccl.so.2' }), /^ERR_NCCL_NOT_FOUND/);
    const folder = mkdtempSync(join(tmpdir(), 'nccl-ext-'));
    try {
      const file = join(folder, 'libnccl.so.2');
      writeFileSync(file, 'no library');
      assert.match(await codeOf({ NCCL_EXT_NCCL_LIBRARY: file }), /^ERR_NCCL_/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
