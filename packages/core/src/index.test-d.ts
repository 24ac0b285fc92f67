// SPDX-License-Identifier: Apache-2.0
// What the types of the public API promise, and what they refuse.

import { describe, expectTypeOf, it } from 'vitest';
import {
  type Communicator,
  type DeviceBuffer,
  type DType,
  type ErrorCode,
  init,
  type Kernel,
  layout,
  localWorld,
  type MemoryShare,
  mesh,
  NcclExtError,
  param,
  replicate,
  type Stream,
  shard,
  subscribe,
  type World,
} from './index.js';

describe('views', () => {
  it('have the typed array of their dtype', () => {
    const buffer = {} as DeviceBuffer;
    expectTypeOf(buffer.view('f32')).toEqualTypeOf<Float32Array>();
    expectTypeOf(buffer.view('bf16')).toEqualTypeOf<Uint16Array>();
    expectTypeOf(buffer.view('i64', 8, 2)).toEqualTypeOf<BigInt64Array>();
    // @ts-expect-error there is no such dtype
    buffer.view('float32');
  });
});

describe('layouts', () => {
  it('take placements per axis or by name, and known dtypes only', () => {
    const axes = mesh({ dp: 2, tp: 4 });
    expectTypeOf(
      layout({ shape: [8], dtype: 'f32', mesh: axes, placements: [replicate(), shard(0)] }).localShape(0),
    ).toEqualTypeOf<readonly number[] | undefined>();
    layout({ shape: [8], dtype: 'f32', mesh: axes, placements: { tp: shard(0, 'even') } });
    // @ts-expect-error placements are objects made by shard() and replicate()
    layout({ shape: [8], dtype: 'f32', mesh: axes, placements: [0, 1] });
    // @ts-expect-error dtype is missing
    layout({ shape: [8], mesh: axes, placements: [] });
  });

  it('cannot be changed', () => {
    const weight = layout({ shape: [8], dtype: 'f32', mesh: mesh({ tp: 2 }), placements: [shard(0)] });
    // @ts-expect-error shapes are fixed
    weight.shape[0] = 4;
    expectTypeOf(weight.dtype).toEqualTypeOf<DType>();
  });
});

describe('worlds', () => {
  it('take no option that another call takes', () => {
    void (() => localWorld({ ranks: 2, timeoutMs: 5000 }));
    // @ts-expect-error plans are kept by the process: createPlan({ cacheEntries })
    void (() => localWorld({ ranks: 2, planCacheEntries: 0 }));
    // @ts-expect-error the same in a process per rank
    void (() => init({ planCacheEntries: 0 }));
    void (() => init({ address: 'node0', port: 29501, token: 'secret' }));
    // @ts-expect-error ranks of one process meet nowhere
    void (() => localWorld({ ranks: 2, address: 'node0' }));
    // @ts-expect-error as the address
    void (() => localWorld({ ranks: 2, port: 29501 }));
    // @ts-expect-error as the address
    void (() => localWorld({ ranks: 2, token: 'secret' }));
  });

  it('return what the bodies return, by rank', () => {
    expectTypeOf<World['run']>().returns.resolves.toBeArray();
    const world = {} as World;
    expectTypeOf(world.run((comm) => comm.rank)).resolves.toEqualTypeOf<number[]>();
    expectTypeOf(world.run(async () => 'x')).resolves.toEqualTypeOf<string[]>();
    // @ts-expect-error ranks is needed
    void localWorld({ backend: 'embedded' });
    // @ts-expect-error there is no such backend
    void localWorld({ ranks: 2, backend: 'cuda11' });
  });

  it('enqueue without promises and wait with one', () => {
    expectTypeOf<Stream['barrier']>().returns.toEqualTypeOf<void>();
    expectTypeOf<Stream['synchronize']>().returns.toEqualTypeOf<Promise<void>>();
    expectTypeOf<Communicator['agree']>().returns.toEqualTypeOf<Promise<void>>();
    expectTypeOf<World>().toHaveProperty(Symbol.asyncDispose);
  });
});

describe('memory and kernels of others', () => {
  const comm = {} as Communicator;

  it('take addresses as bigint', () => {
    comm.wrapMemory(512n, 64);
    // @ts-expect-error a number loses the low bits of an address
    comm.wrapMemory(512, 64);
    // @ts-expect-error streams are addresses too
    comm.wrapStream(512);
    expectTypeOf<Stream['handle']>().toEqualTypeOf<bigint>();
    expectTypeOf<DeviceBuffer['kind']>().toEqualTypeOf<'plain' | 'symmetric' | 'wrapped' | 'imported'>();
  });

  it('tell the two ways to share memory apart', () => {
    const share = {} as MemoryShare;
    if (share.kind === 'fd') expectTypeOf(share.fd).toEqualTypeOf<number>();
    else expectTypeOf(share.handle).toEqualTypeOf<Uint8Array>();
    // @ts-expect-error a descriptor needs the size of its allocation
    comm.importMemory({ kind: 'fd', fd: 3, byteOffset: 0, bytes: 8 });
  });

  it('take typed values only, and shapes of one to three extents', () => {
    const kernel = {} as Kernel;
    const stream = {} as Stream;
    const buffer = {} as DeviceBuffer;
    const parameters = [buffer, { buffer, byteOffset: 8 }, param.u32(1), param.i64(-1n), param.guard];
    kernel.launch(stream, { grid: [1, 2], block: 256, parameters });
    // @ts-expect-error which C type is 5?
    kernel.launch(stream, { grid: 1, block: 1, parameters: [5] });
    // @ts-expect-error an address keeps no buffer alive
    kernel.launch(stream, { grid: 1, block: 1, parameters: [buffer.address] });
    // @ts-expect-error there is no fourth axis
    kernel.launch(stream, { grid: [1, 1, 1, 1], block: 1 });
    // @ts-expect-error block is needed
    kernel.launch(stream, { grid: 1 });
    // @ts-expect-error 32 bits are no bigint
    param.u32(1n);
  });

  it('split into communicators, or none', () => {
    expectTypeOf<Communicator['split']>().returns.resolves.toEqualTypeOf<Communicator | undefined>();
    // @ts-expect-error color is needed
    void comm.split({ key: 1 });
  });
});

describe('errors and events', () => {
  it('narrow unknown values', () => {
    const error: unknown = undefined;
    if (NcclExtError.is(error, 'ERR_TIMEOUT')) {
      expectTypeOf(error.code).toEqualTypeOf<ErrorCode>();
      expectTypeOf(error.peer).toEqualTypeOf<number | undefined>();
    }
    // @ts-expect-error there is no such code
    NcclExtError.is(error, 'ERR_NOPE');
  });

  it('type what a channel tells', () => {
    subscribe('refit.progress', (event) => expectTypeOf(event.bytes).toEqualTypeOf<number>());
    // @ts-expect-error there is no such channel
    subscribe('nothing', () => {});
  });
});
