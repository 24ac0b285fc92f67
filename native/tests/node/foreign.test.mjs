// SPDX-License-Identifier: Apache-2.0
// Memory and streams of others through the binding: addresses as bigints, shares as plain objects, between two processes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fstatSync } from 'node:fs';
import { describe, it } from 'node:test';
import { take, withRanks } from './addon.mjs';

const codes = { invalidArgument: 1, invalidState: 2, disposed: 3, unsupported: 10, outOfBounds: 13 };

/** Bytes of a buffer. */
async function bytesOf(runtime, stream, buffer, bytes) {
  const host = new Uint8Array(bytes);
  assert.equal(runtime.enqueueDownload(stream, host, buffer, 0), 0);
  take(await runtime.synchronize(stream));
  return host;
}

describe('wrapMemory', () => {
  it('takes an address as a bigint and nothing else', async () => {
    await withRanks(1, async (runtime, [rank]) => {
      const stream = take(runtime.createStream(rank));
      const buffer = take(runtime.allocate(rank, 4096, 'plain'));
      const address = runtime.bufferAddress(buffer);
      const alias = take(runtime.wrapMemory(rank, address + 16n, 100));
      assert.equal(runtime.bufferAddress(alias), address + 16n);
      assert.equal(runtime.enqueueFill(stream, buffer, 0, 4096, 0), 0);
      assert.equal(runtime.enqueueFill(stream, alias, 0, 100, 8), 0);
      assert.deepEqual([...(await bytesOf(runtime, stream, buffer, 117))].slice(15, 117), [
        0,
        ...Array(100).fill(8),
        0,
      ]);
      assert.equal(runtime.freeBuffer(alias), 0);
      for (const wrong of [Number(address), 0n, -1n, 2n ** 64n, undefined, '1'])
        assert.equal(runtime.wrapMemory(rank, wrong, 8).error.code, codes.invalidArgument);
      assert.equal(runtime.wrapMemory(rank, address, 1.5).error.code, codes.invalidArgument);
      assert.equal(runtime.wrapMemory(rank, address, 2 ** 40).error.code, codes.outOfBounds);
    });
  });
});

describe('exportMemory', () => {
  it('gives plain memory as an IPC handle, which this process does not open', async () => {
    await withRanks(1, async (runtime, [rank]) => {
      const buffer = take(runtime.allocate(rank, 1000, 'plain'));
      const share = take(runtime.exportMemory(buffer));
      assert.ok(share.handle instanceof Uint8Array && share.handle.length === 64);
      assert.deepEqual(share, { kind: 'ipc', handle: share.handle, byteOffset: 0, bytes: 1000 });
      assert.match(runtime.importMemory(rank, share).error.detail, /of this process/);
    });
  });

  it('gives symmetric memory as a descriptor, open until the buffer is freed', async () => {
    await withRanks(1, async (runtime, [rank]) => {
      const buffer = take(runtime.allocate(rank, 1000, 'symmetric'));
      const share = take(runtime.exportMemory(buffer));
      const { fd, allocationBytes } = share;
      assert.ok(allocationBytes >= 1000);
      const known = { kind: 'fd', processId: process.pid, byteOffset: 0, bytes: 1000 };
      assert.deepEqual(share, { ...known, fd, allocationBytes });
      assert.deepEqual(take(runtime.exportMemory(buffer)), share);
      fstatSync(fd);
      assert.equal(runtime.freeBuffer(buffer), 0);
      assert.throws(() => fstatSync(fd), { code: 'EBADF' });
      assert.equal(runtime.exportMemory(buffer).error.code, codes.disposed);
    });
  });
});

describe('importMemory', () => {
  const program = `
    const { addon, take } = await import(${JSON.stringify(new URL('addon.mjs', import.meta.url).href)});
    const { runtime } = addon.createBackend('0.0.0');
    const [rank] = take(await runtime.createLocalRanks({ ranks: 1, timeoutMs: 5000, workers: 0 }));
    const stream = take(runtime.createStream(rank));
    const buffer = take(runtime.allocate(rank, 1000, 'symmetric'));
    const fill = async (value) => {
      runtime.enqueueFill(stream, buffer, 0, 1000, value);
      take(await runtime.synchronize(stream));
    };
    await fill(1);
    process.stdout.write(JSON.stringify(take(runtime.exportMemory(buffer))));
    process.stdin.on('data', async () => {
      const host = new Uint8Array(1000);
      runtime.enqueueDownload(stream, host, buffer, 0);
      take(await runtime.synchronize(stream));
      process.stdout.write(String(host[999]));
      process.stdin.destroy();
    });`;

  it('opens memory of another process, which sees what is written there', { timeout: 60_000 }, async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    child.stdout.setEncoding('utf8');
    const ended = once(child, 'exit');
    const share = JSON.parse((await once(child.stdout, 'data'))[0]);
    assert.equal(share.processId, child.pid);
    await withRanks(1, async (runtime, [rank]) => {
      const stream = take(runtime.createStream(rank));
      const buffer = take(runtime.importMemory(rank, share));
      assert.deepEqual([...(await bytesOf(runtime, stream, buffer, 1000))], Array(1000).fill(1));
      assert.equal(runtime.enqueueFill(stream, buffer, 999, 1, 7), 0);
      take(await runtime.synchronize(stream));
      child.stdin.write('read');
      assert.equal((await once(child.stdout, 'data'))[0], '7');
      assert.equal(runtime.exportMemory(buffer).error.code, codes.unsupported);
      assert.equal((await runtime.registerWindow(rank, buffer)).error.code, codes.unsupported);
      assert.equal(runtime.freeBuffer(buffer), 0);
    });
    await ended;
  });

  it('leaves a descriptor of this process to the caller', async () => {
    await withRanks(1, async (runtime, [rank]) => {
      const { processId: _, ...share } = take(
        runtime.exportMemory(take(runtime.allocate(rank, 64, 'symmetric'))),
      );
      const buffer = take(runtime.importMemory(rank, share));
      assert.equal(runtime.freeBuffer(buffer), 0);
      fstatSync(share.fd);
    });
  });

  it('refuses shares of any other form', async () => {
    await withRanks(1, async (runtime, [rank]) => {
      const ipc = { kind: 'ipc', handle: new Uint8Array(64), byteOffset: 0, bytes: 8 };
      const fd = { kind: 'fd', fd: 1, allocationBytes: 2 ** 21, byteOffset: 0, bytes: 8 };
      for (const share of [
        undefined,
        'ipc',
        {},
        { ...ipc, kind: 'file' },
        { ...ipc, handle: new Uint8Array(63) },
        { ...ipc, handle: [...ipc.handle] },
        { ...ipc, handle: new Uint16Array(32) },
        { ...ipc, bytes: -1 },
        { ...ipc, byteOffset: 0.5 },
        { ...fd, fd: '1' },
        { ...fd, fd: 1 },
        { ...fd, processId: 0 },
        { ...fd, processId: 'me' },
        { ...fd, processId: 2 ** 22 },
      ]) {
        const { error } = runtime.importMemory(rank, share);
        assert.equal(error.code, codes.invalidArgument, JSON.stringify(share));
        assert.equal(error.op, 'importMemory');
      }
      assert.equal(runtime.importMemory(rank, { ...fd, bytes: 2 ** 30 }).error.code, codes.outOfBounds);
    });
  });
});

describe('streams', () => {
  it('go out and come in as bigints', async () => {
    await withRanks(1, async (runtime, [rank]) => {
      const stream = take(runtime.createStream(rank));
      const address = runtime.streamAddress(stream);
      assert.ok(typeof address === 'bigint' && address > 2n);
      const wrapped = take(runtime.wrapStream(rank, address));
      assert.notEqual(wrapped, stream);
      assert.equal(runtime.streamAddress(wrapped), address);
      const buffer = take(runtime.allocate(rank, 8, 'plain'));
      assert.equal(runtime.enqueueFill(stream, buffer, 0, 8, 1), 0);
      assert.equal(runtime.enqueueFill(wrapped, buffer, 0, 8, 2), 0);
      assert.equal((await bytesOf(runtime, stream, buffer, 8))[0], 2);
      assert.equal(runtime.beginCapture(stream), 0);
      assert.equal(runtime.enqueueFill(wrapped, buffer, 0, 8, 2), codes.invalidState);
      take(runtime.endCapture(stream));
      assert.ok((await runtime.synchronize(wrapped)).ok);
      assert.equal(runtime.freeStream(wrapped), 0);
      assert.equal((await bytesOf(runtime, stream, buffer, 8))[0], 2);
      assert.equal(runtime.streamAddress(wrapped), 0n);
      for (const wrong of [0n, 1n, 2n, Number(address), undefined])
        assert.equal(runtime.wrapStream(rank, wrong).error.code, codes.invalidArgument);
    });
  });
});
