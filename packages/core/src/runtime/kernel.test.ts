// SPDX-License-Identifier: Apache-2.0
// What reaches the backend when a user launches a kernel, and everything that does not.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { localWorld } from '../world/local-world.js';
import { type FakeGpu, fakeGpu, peerTable } from './fake-gpu.test-util.js';
import type { Kernel } from './kernel.js';
import type { KernelModule } from './kernel-module.js';
import type { KernelParameter } from './kernel-parameters.js';
import { param } from './kernel-values.js';
import type { Stream } from './stream.js';

let gpu: FakeGpu;
let module: KernelModule;
let kernel: Kernel;
let stream: Stream;
beforeEach(async () => {
  gpu = await fakeGpu();
  module = await gpu.comm.loadModule(Uint8Array.of(1, 2));
  kernel = module.kernel('scale');
  stream = gpu.comm.createStream();
});
afterEach(() => gpu.close());

const one = { grid: 1, block: 32 } as const;

function pack(parameters: readonly KernelParameter[]) {
  kernel.launch(stream, { ...one, parameters });
  return gpu.launches.at(-1)!.launch;
}

function refusal(parameters: readonly unknown[]): unknown {
  try {
    pack(parameters as never);
  } catch (error) {
    expect(gpu.launches).toEqual([]);
    return error;
  }
  throw new Error('an error was expected');
}

describe('a launch', () => {
  it('passes stream, kernel, shape and shared memory on', () => {
    kernel.launch(stream, { grid: [2, 3], block: [32, 2, 4], sharedBytes: 1024 });
    expect(gpu.launches).toEqual([
      {
        stream: stream.backendHandle,
        kernel: 72,
        launch: {
          grid: [2, 3, 1],
          block: [32, 2, 4],
          sharedBytes: 1024,
          parameters: new Uint8Array(0),
          offsets: new Int32Array(0),
          guardOffset: -1,
          buffers: [],
        },
      },
    ]);
  });

  it('packs values as C does, little endian and aligned to their sizes', () => {
    const { parameters, offsets } = pack([
      param.u8(0xab),
      param.i16(-2),
      param.i8(-1),
      param.f64(1.5),
      param.u32(0xdead_beef),
      param.u64(2n ** 64n - 1n),
      param.i32(-3),
      param.f32(0.5),
      param.i64(-1),
      param.u16(0x1234),
      param.bytes(Uint16Array.of(1, 2, 3), 2),
    ]);
    expect([...offsets]).toEqual([0, 2, 4, 8, 16, 24, 32, 36, 40, 48, 50]);
    const view = new DataView(parameters.buffer);
    expect(parameters.byteLength).toBe(56);
    expect([view.getUint8(0), view.getInt16(2, true), view.getInt8(4)]).toEqual([0xab, -2, -1]);
    expect([view.getFloat64(8, true), view.getUint32(16, true)]).toEqual([1.5, 0xdead_beef]);
    expect(view.getBigUint64(24, true)).toBe(2n ** 64n - 1n);
    expect([view.getInt32(32, true), view.getFloat32(36, true)]).toEqual([-3, 0.5]);
    expect([view.getBigInt64(40, true), view.getUint16(48, true)]).toEqual([-1n, 0x1234]);
    expect([...parameters.subarray(50)]).toEqual([1, 0, 2, 0, 3, 0]);
  });

  it('passes addresses of buffers, places in them and tables of windows, and names each buffer once', async () => {
    const { comm, peer } = gpu;
    const [a, b] = [comm.allocate(64), comm.allocate(64)];
    const [window] = await Promise.all([comm.registerWindow(b), peer.registerWindow(peer.allocate(8))]);
    const { parameters, buffers } = pack([a, { buffer: a, byteOffset: 8 }, { buffer: b }, window]);
    const words = new BigUint64Array(parameters.buffer);
    expect([...words]).toEqual([a.address, a.address + 8n, b.address, peerTable]);
    expect(buffers).toEqual([a.handle, b.handle]);
  });

  it('leaves 32 aligned bytes for the guard and says where', () => {
    const launch = pack([param.u32(1), param.guard, param.u8(2)]);
    expect([launch.guardOffset, ...launch.offsets]).toEqual([8, 0, 8, 40]);
    expect(launch.parameters.byteLength).toBe(41);
    expect(refusalOf([param.guard, param.u8(0), param.guard])).toMatchObject({ field: 'parameters[2]' });
  });

  function refusalOf(parameters: readonly unknown[]): unknown {
    gpu.launches.length = 0;
    return refusal(parameters);
  }

  it.each([
    ['u8', param.u8(256)],
    ['u8 below', param.u8(-1)],
    ['i8', param.i8(128)],
    ['u16', param.u16(65_536)],
    ['i16', param.i16(-32_769)],
    ['u32', param.u32(2 ** 32)],
    ['i32', param.i32(2 ** 31)],
    ['a fraction', param.u32(0.5)],
    ['no number', param.u32('1' as never)],
    ['u64', param.u64(-1n)],
    ['u64 above', param.u64(2n ** 64n)],
    ['i64', param.i64(2n ** 63n)],
    ['an unsafe integer', param.u64(2 ** 53)],
    ['f32', param.f32(1e39)],
    ['f64', param.f64(1n as never)],
    ['an empty struct', param.bytes(new Uint8Array(0), 4)],
    ['a struct of an odd size', param.bytes(new Uint8Array(6), 4)],
    ['no struct', param.bytes([1] as never, 4)],
  ])('names the parameter that is out of range: %s', (_name, value) => {
    expect(refusal([param.u8(1), value])).toMatchObject({
      code: 'ERR_INVALID_ARGUMENT',
      field: 'parameters[1]',
      message: expect.stringMatching(/^parameters\[1\]/),
    });
  });

  it.each([0, 3, 512, 1.5, '4'])('refuses %s as an alignment', (alignment) => {
    expect(refusal([param.bytes(new Uint8Array(8), alignment as never)])).toMatchObject({
      code: 'ERR_INVALID_ARGUMENT',
      field: 'parameters[0] alignment',
    });
  });

  it('refuses untyped values, foreign and freed objects, places outside, and too much, by name', async () => {
    const { comm, peer } = gpu;
    const refused = (code: string, field: string) => expect.objectContaining({ code, field });
    for (const wrong of [undefined, null, 5, 5n, 'x', {}, [], () => 0])
      expect(refusal([wrong])).toEqual(refused('ERR_INVALID_ARGUMENT', 'parameters[0]'));
    expect(refusal([{ buffer: 3 }])).toEqual(refused('ERR_INVALID_ARGUMENT', 'parameters[0].buffer'));
    expect(refusal([peer.allocate(8)])).toEqual(refused('ERR_FOREIGN_OBJECT', 'parameters[0]'));
    const [, theirs] = await Promise.all([comm, peer].map((rank) => rank.registerWindow(rank.allocate(8))));
    expect(refusal([theirs])).toEqual(refused('ERR_FOREIGN_OBJECT', 'parameters[0]'));
    const buffer = comm.allocate(8);
    expect(refusal([{ buffer, byteOffset: 9 }])).toEqual(
      refused('ERR_OUT_OF_BOUNDS', 'parameters[0].byteOffset'),
    );
    expect(refusal([{ buffer, byteOffset: 0.5 }])).toMatchObject({ code: 'ERR_INVALID_ARGUMENT' });
    await buffer.dispose();
    expect(refusal([buffer])).toMatchObject({ code: 'ERR_DISPOSED' });
    const large = param.bytes(new Uint8Array(32_760), 8);
    expect(refusal([large, param.u64(0)])).toEqual(refused('ERR_INVALID_ARGUMENT', 'parameters[1]'));
    expect(() => kernel.launch(stream, { ...one, parameters: 5 as never })).toThrow(
      refused('ERR_INVALID_ARGUMENT', 'parameters'),
    );
  });

  it.each([
    [{ grid: 0, block: 1 }, 'grid.x'],
    [{ grid: [1, 65_536], block: 1 }, 'grid.y'],
    [{ grid: 2 ** 31, block: 1 }, 'grid.x'],
    [{ grid: [], block: 1 }, 'grid'],
    [{ grid: [1, 1, 1, 1], block: 1 }, 'grid'],
    [{ grid: 1, block: undefined }, 'block'],
    [{ grid: 1, block: 1025 }, 'block.x'],
    [{ grid: 1, block: [1, 1, 65] }, 'block.z'],
    [{ grid: 1, block: [32, 33] }, 'block'],
    [{ grid: 1, block: 1.5 }, 'block.x'],
    [{ grid: 1, block: 1, sharedBytes: -1 }, 'sharedBytes'],
    [5, 'options'],
  ])('refuses the shape %j', (options, field) => {
    expect(() => kernel.launch(stream, options as never)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field }),
    );
  });

  it('needs a stream of its own rank', () => {
    for (const wrong of [undefined, 0, module])
      expect(() => kernel.launch(wrong as never, one)).toThrow(expect.objectContaining({ field: 'stream' }));
    expect(() => kernel.launch(gpu.peer.createStream(), one)).toThrow(
      expect.objectContaining({ code: 'ERR_FOREIGN_OBJECT', field: 'stream' }),
    );
  });
});

describe('a module', () => {
  it('is loaded from a copy of the image', async () => {
    const image = Uint8Array.of(3, 4);
    await gpu.comm.loadModule(image.buffer);
    const given = (gpu.runtime.loadModule as unknown as { mock: { calls: [number, Uint8Array][] } }).mock
      .calls;
    image[0] = 9;
    expect(given.map(([, bytes]) => [...bytes])).toEqual([
      [1, 2],
      [3, 4],
    ]);
    for (const wrong of [undefined, 'cubin', [], new Uint8Array(0), new ArrayBuffer(0)])
      await expect(gpu.comm.loadModule(wrong as never)).rejects.toMatchObject({ field: 'image' });
  });

  it('names kernels, and refuses names that it does not have', () => {
    expect([kernel.name, kernel.module]).toEqual(['scale', module]);
    for (const wrong of [undefined, '', 5]) expect(() => module.kernel(wrong as never)).toThrow(/^name/);
    expect(() => module.kernel('absent')).toThrow(expect.objectContaining({ code: 'ERR_UNSUPPORTED' }));
  });

  it('stays usable while it is busy, and its kernels end with it', async () => {
    gpu.busyOnce();
    await expect(module.dispose()).rejects.toMatchObject({ code: 'ERR_BUSY' });
    kernel.launch(stream, one);
    await module.dispose();
    expect(() => kernel.launch(stream, one)).toThrow(expect.objectContaining({ code: 'ERR_DISPOSED' }));
    expect(() => module.kernel('scale')).toThrow(expect.objectContaining({ code: 'ERR_DISPOSED' }));
  });

  it('is refused by the embedded backend, which says what to do', async () => {
    const world = await localWorld({ ranks: 1, backend: 'embedded' });
    await expect(world.ranks[0]!.loadModule(Uint8Array.of(1))).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      help: expect.stringContaining('install a GPU backend'),
    });
    await world.dispose();
  });
});
