// SPDX-License-Identifier: Apache-2.0
// Memory and streams that others made: what reaches the backend, and what is refused by name before.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { localWorld } from '../world/local-world.js';
import { type FakeGpu, fakeGpu } from './fake-gpu.test-util.js';

let gpu: FakeGpu;
beforeEach(async () => {
  gpu = await fakeGpu();
});
afterEach(() => gpu.close());

const ipc = { kind: 'ipc', handle: new Uint8Array(64).fill(7), byteOffset: 512, bytes: 64 } as const;
const fd = { kind: 'fd', fd: 5, processId: 17, allocationBytes: 4096, byteOffset: 512, bytes: 64 } as const;

function refused(field: string, code = 'ERR_INVALID_ARGUMENT') {
  return expect.objectContaining({ code, field });
}

describe('wrapMemory', () => {
  it('gives a buffer of this kind, which streams take', async () => {
    const { comm, runtime } = gpu;
    const buffer = comm.wrapMemory(0x7f00_0000_0000n, 64);
    expect(runtime.wrapMemory).toHaveBeenCalledWith(comm.handle, 0x7f00_0000_0000n, 64);
    expect([buffer.kind, buffer.bytes, buffer.communicator]).toEqual(['wrapped', 64, comm]);
    comm.createStream().fill(buffer, 1);
    expect([comm.allocate(1).kind, comm.allocate(1, 'plain').kind]).toEqual(['symmetric', 'plain']);
  });

  it('refuses null, numbers, and ranges that leave the address space', () => {
    for (const address of [undefined, null, 0n, -1n, 512, 2n ** 64n, 2n ** 64n - 32n])
      expect(() => gpu.comm.wrapMemory(address as never, 64)).toThrow(refused('address'));
    for (const bytes of [0, -1, 0.5, 64n, undefined])
      expect(() => gpu.comm.wrapMemory(512n, bytes as never)).toThrow(refused('bytes'));
    expect(gpu.runtime.wrapMemory).not.toHaveBeenCalled();
  });
});

describe('importMemory', () => {
  it.each([ipc, fd, { ...fd, processId: undefined }])(
    'opens what share() of another process gave: %j',
    (share) => {
      const { comm, runtime } = gpu;
      const buffer = comm.importMemory({ ...share, extra: 1 } as never);
      expect([buffer.kind, buffer.bytes]).toEqual(['imported', 64]);
      const { processId: _, ...required } = share as typeof fd;
      expect(runtime.importMemory).toHaveBeenCalledWith(
        comm.handle,
        (share as typeof fd).processId === undefined ? required : share,
      );
    },
  );

  it.each([
    ['share', undefined],
    ['share', 'fd'],
    ['share.kind', { ...fd, kind: 'file' }],
    ['share.handle', { ...ipc, handle: new Uint8Array(63) }],
    ['share.handle', { ...ipc, handle: Array.from(ipc.handle) }],
    ['share.byteOffset', { ...ipc, byteOffset: -1 }],
    ['share.bytes', { ...ipc, bytes: 0 }],
    ['share.bytes', { ...fd, bytes: '64' }],
    ['share.fd', { ...fd, fd: -1 }],
    ['share.processId', { ...fd, processId: 0 }],
    ['share.allocationBytes', { ...fd, allocationBytes: undefined }],
  ])('refuses a wrong %s', (field, share) => {
    expect(() => gpu.comm.importMemory(share as never)).toThrow(refused(field));
  });

  it('refuses a range outside its allocation', () => {
    expect(() => gpu.comm.importMemory({ ...fd, byteOffset: 4096 })).toThrow(
      refused('share.bytes', 'ERR_OUT_OF_BOUNDS'),
    );
  });
});

describe('share', () => {
  it('comes from the backend, until the buffer is disposed', async () => {
    const buffer = gpu.comm.allocate(64);
    expect(buffer.share()).toMatchObject({ kind: 'fd', fd: 9 });
    await buffer.dispose();
    expect(() => buffer.share()).toThrow(expect.objectContaining({ code: 'ERR_DISPOSED' }));
  });
});

describe('wrapStream', () => {
  it('gives a stream that is drained with its communicator', async () => {
    const { comm, runtime } = gpu;
    const stream = comm.wrapStream(0x55n);
    expect(runtime.wrapStream).toHaveBeenCalledWith(comm.handle, 0x55n);
    stream.fill(comm.allocate(8), 1);
    await comm.dispose();
    expect(stream.disposed).toBe(true);
  });

  it('refuses default streams, which wait for those of peers', () => {
    for (const handle of [undefined, null, 0n, 1n, 2n, 85, 2n ** 64n])
      expect(() => gpu.comm.wrapStream(handle as never)).toThrow(refused('handle'));
  });
});

describe('the embedded backend', () => {
  it('has none of it, and gives its own streams and windows numbers', async () => {
    const world = await localWorld({ ranks: 2, backend: 'embedded' });
    const [comm] = world.ranks;
    const unsupported = expect.objectContaining({ code: 'ERR_UNSUPPORTED', rank: 0 });
    expect(() => comm!.wrapMemory(512n, 8)).toThrow(unsupported);
    expect(() => comm!.importMemory(ipc)).toThrow(unsupported);
    expect(() => comm!.wrapStream(512n)).toThrow(unsupported);
    expect(() => comm!.allocate(8).share()).toThrow(unsupported);
    expect(comm!.createStream().handle).not.toBe(comm!.createStream().handle);
    expect(comm!.device).toMatchObject({ uuid: '', multiprocessors: 0, smBudget: 0, ranks: 2 });
    expect(comm!.facts).toEqual({});
    const windows = await world.run((rank) => rank.registerWindow(rank.allocate(8)));
    const addresses = windows.map((window) => window.buffer.address);
    for (const window of windows) expect(window.peers).toEqual({ table: 0n, addresses });
    await windows[0]!.dispose();
    expect(() => windows[0]!.peers).toThrow(expect.objectContaining({ code: 'ERR_DISPOSED' }));
    await world.dispose();
  });
});
