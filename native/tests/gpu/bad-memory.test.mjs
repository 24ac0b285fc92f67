// SPDX-License-Identifier: Apache-2.0
// Memory that users can get wrong on GPUs, through the public API: each case is a typed error at once, and the world works on.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { localWorld } from '@nccl-ext/core';
import { allRefused, gpus, MiB, refused, shared, tryTo } from './refusals.mjs';

describe('a buffer that is', () => {
  it('null', () => {
    const { comm, stream } = shared;
    for (const nothing of [null, undefined, 0, 0n]) {
      refused(() => stream.fill(nothing, 0), 'ERR_INVALID_ARGUMENT', /buffer/);
      refused(() => stream.upload(nothing, new Uint8Array(1)), 'ERR_INVALID_ARGUMENT', /buffer/);
      refused(() => comm.wrapMemory(nothing, 16), 'ERR_INVALID_ARGUMENT', /address/);
      refused(() => comm.importMemory(nothing), 'ERR_INVALID_ARGUMENT', /share/);
    }
  });

  it('freed', async () => {
    const { comm, stream } = shared;
    const buffer = comm.allocate(64 * MiB, 'plain');
    const { address } = buffer;
    await buffer.dispose();
    refused(() => stream.fill(buffer, 0), 'ERR_DISPOSED');
    refused(() => buffer.share(), 'ERR_DISPOSED');
    refused(() => stream.copy({ buffer }, { buffer }, 1), 'ERR_DISPOSED');
    await assert.rejects(comm.registerWindow(buffer), { code: 'ERR_DISPOSED' });
    // Memory goes back on another thread.
    const until = performance.now() + 5000;
    let wrapped = tryTo(() => comm.wrapMemory(address, MiB));
    while (wrapped.code === undefined && performance.now() < until) {
      await wrapped.value.dispose();
      await new Promise((resolve) => setTimeout(resolve, 20));
      wrapped = tryTo(() => comm.wrapMemory(address, MiB));
    }
    assert.equal(wrapped.code, 'ERR_INVALID_ARGUMENT');
  });

  it('of another rank', async () => {
    const { comm, peer, stream } = shared;
    const foreign = peer.allocate(100);
    refused(() => stream.fill(foreign, 0), 'ERR_FOREIGN_OBJECT');
    refused(() => stream.download(new Uint8Array(4), foreign), 'ERR_FOREIGN_OBJECT');
    refused(() => stream.copy({ buffer: comm.allocate(8) }, { buffer: foreign }, 4), 'ERR_FOREIGN_OBJECT');
    await assert.rejects(comm.registerWindow(foreign), { code: 'ERR_FOREIGN_OBJECT' });
  });

  it('no memory of the GPU', () => {
    const { comm } = shared;
    refused(() => comm.wrapMemory(0x1000n, 16), 'ERR_INVALID_ARGUMENT', /0x1000/);
    refused(() => comm.wrapMemory(2n ** 64n - 4096n, 16), 'ERR_INVALID_ARGUMENT');
    refused(() => comm.wrapMemory(-1n, 16), 'ERR_INVALID_ARGUMENT');
  });

  it('too small', () => {
    const { comm, stream } = shared;
    const buffer = comm.allocate(100, 'plain');
    const other = comm.allocate(100);
    refused(() => stream.fill(buffer, 0, 0, 101), 'ERR_OUT_OF_BOUNDS', /101/);
    refused(() => stream.fill(buffer, 0, 100, 1), 'ERR_OUT_OF_BOUNDS');
    refused(() => stream.upload(buffer, new Uint8Array(101)), 'ERR_OUT_OF_BOUNDS');
    refused(() => stream.download(new Uint8Array(8), buffer, 93), 'ERR_OUT_OF_BOUNDS');
    refused(() => stream.copy({ buffer, byteOffset: 50 }, { buffer: other }, 51), 'ERR_OUT_OF_BOUNDS');
    const large = comm.allocate(64 * MiB, 'plain');
    refused(() => comm.wrapMemory(large.address, 2 ** 44), 'ERR_OUT_OF_BOUNDS', /17592186044416/);
    refused(() => comm.wrapMemory(large.address, 0), 'ERR_INVALID_ARGUMENT', /bytes/);
    const share = comm.allocate(64 * MiB).share();
    const beyond = { ...share, bytes: share.allocationBytes - share.byteOffset + 1 };
    refused(() => comm.importMemory(beyond), 'ERR_OUT_OF_BOUNDS');
  });

  it('at an offset that is no integer, or negative', () => {
    const { comm, stream } = shared;
    const buffer = comm.allocate(100);
    for (const wrong of [-1, 0.5, Number.NaN, 2 ** 60, '4'])
      assert.match(
        tryTo(() => stream.fill(buffer, 0, wrong, 1)).code,
        /^ERR_(INVALID_ARGUMENT|OUT_OF_BOUNDS)$/,
      );
  });

  it('not where a window may start', async () => {
    const { world } = shared;
    const wrapped = world.ranks.map((one) => {
      const memory = one.allocate(4 * MiB);
      return one.wrapMemory(memory.address + 16n, MiB);
    });
    const codes = ['ERR_INVALID_ARGUMENT', 'ERR_INVALID_ARGUMENT'];
    await allRefused((one) => one.registerWindow(wrapped[one.rank]), codes);
  });

  it('no memory that can be a window, on one rank only: all ranks learn it at once', async () => {
    const { comm } = shared;
    const plain = comm.allocate(4096, 'plain');
    const wrapped = comm.wrapMemory(comm.allocate(4096, 'plain').address, 4096);
    const imported = comm.importMemory(comm.allocate(2 * MiB).share());
    for (const [buffer, code] of [
      [plain, 'ERR_INVALID_ARGUMENT'],
      [wrapped, 'ERR_UNSUPPORTED'],
      [imported, 'ERR_UNSUPPORTED'],
    ]) {
      const begun = performance.now();
      await allRefused((one) => one.registerWindow(one === comm ? buffer : one.allocate(4096)), [code, code]);
      assert.ok(performance.now() - begun < 2000);
    }
  });

  it('overlapping its source, also under another name', () => {
    const { comm, stream } = shared;
    const buffer = comm.allocate(1000, 'plain');
    const alias = comm.wrapMemory(buffer.address, 1000);
    const overlap = (to, from) => stream.copy({ buffer: to, byteOffset: 10 }, { buffer: from }, 11);
    refused(() => overlap(buffer, buffer), 'ERR_OVERLAP');
    refused(() => overlap(alias, buffer), 'ERR_OVERLAP');
    stream.copy({ buffer: alias, byteOffset: 10 }, { buffer }, 10);
  });

  it('on another GPU', { skip: gpus < 2 && 'needs two GPUs' }, async () => {
    const { comm } = shared;
    const other = await localWorld({ ranks: 1, backend: 'cuda', devices: [1] });
    try {
      const there = other.ranks[0].allocate(4096, 'plain');
      refused(() => comm.wrapMemory(there.address, 4096), 'ERR_INVALID_ARGUMENT', /GPU 1.*GPU 0/);
      const { handle } = other.ranks[0].createStream();
      refused(() => comm.wrapStream(handle), 'ERR_INVALID_ARGUMENT', /GPU 1.*GPU 0/);
    } finally {
      await other.dispose();
    }
  });
});

describe('a share that', () => {
  it('names memory of nobody', () => {
    const { comm } = shared;
    const ipc = { kind: 'ipc', handle: new Uint8Array(64).fill(0x5a), byteOffset: 0, bytes: 16 };
    refused(() => comm.importMemory(ipc), 'ERR_INVALID_ARGUMENT');
    refused(() => comm.importMemory({ ...ipc, handle: new Uint8Array(66) }), 'ERR_INVALID_ARGUMENT', /64/);
    refused(() => comm.importMemory({ ...ipc, kind: 'dma' }), 'ERR_INVALID_ARGUMENT', /kind/);
    const fd = { kind: 'fd', fd: 1, allocationBytes: 2 * MiB, byteOffset: 0, bytes: 16 };
    refused(() => comm.importMemory(fd), 'ERR_INVALID_ARGUMENT');
    refused(() => comm.importMemory({ ...fd, processId: 0x7fff_fff0 }), 'ERR_INVALID_ARGUMENT', /process/);
  });

  it('is of this very process', () => {
    const { comm } = shared;
    const share = comm.allocate(4 * MiB, 'plain').share();
    assert.equal(share.kind, 'ipc');
    refused(() => comm.importMemory(share), 'ERR_INVALID_ARGUMENT', /this process/);
  });

  it('has another size than its allocation', () => {
    const { comm } = shared;
    const share = comm.allocate(4 * MiB).share();
    const { allocationBytes } = share;
    refused(
      () => comm.importMemory({ ...share, allocationBytes: allocationBytes + 1 }),
      'ERR_INVALID_ARGUMENT',
    );
    const doubled = { ...share, allocationBytes: 2 * allocationBytes };
    refused(() => comm.importMemory(doubled), 'ERR_INVALID_ARGUMENT', /allocation/);
  });

  it('is of memory that was imported is refused', () => {
    const { comm } = shared;
    const imported = comm.importMemory(comm.allocate(2 * MiB).share());
    refused(() => imported.share(), 'ERR_UNSUPPORTED');
  });
});
