// SPDX-License-Identifier: Apache-2.0
// What the types of the public API promise, and what they refuse.

import { type Communicator, type DeviceBuffer, type Layout, mesh } from '@nccl-ext/core';
import { describe, expectTypeOf, it } from 'vitest';
import {
  createPlan,
  parallelism,
  prepareTransfer,
  type RefitResult,
  refit,
  reshard,
  type Transfer,
  type TransferPlan,
} from './index.js';

const comm = {} as Communicator;
const layout = {} as Layout;
const buffer = {} as DeviceBuffer;
const plan = {} as TransferPlan;

describe('plans and transfers', () => {
  it('keep plans as a call says, not as a world says', () => {
    createPlan({ tensors: [], cacheEntries: 0 });
    // @ts-expect-error the cache is the process's, and refits have no say in it
    void refit({ from: 'tp=1', to: 'tp=1', planCacheEntries: 0 });
  });

  it('are synchronous to make and asynchronous to prepare', () => {
    expectTypeOf(
      createPlan({ tensors: [{ name: 'w', source: layout, destination: layout }] }),
    ).toEqualTypeOf<TransferPlan>();
    expectTypeOf(prepareTransfer(comm, plan, { sources: { w: buffer } })).resolves.toEqualTypeOf<Transfer>();
    expectTypeOf<Transfer['enqueue']>().returns.toEqualTypeOf<void>();
    // @ts-expect-error a tensor has two sides
    createPlan({ tensors: [{ name: 'w', source: layout }] });
    // @ts-expect-error a mesh is no layout
    createPlan({ tensors: [{ name: 'w', source: mesh({ tp: 1 }), destination: layout }] });
  });

  it('take SMs and a path of this rank, and no other names', () => {
    void prepareTransfer(comm, plan, { sms: 0, path: 'sendrecv', verify: true });
    expectTypeOf(comm.transferPath).toEqualTypeOf<'auto' | 'mapped' | 'sendrecv'>();
    expectTypeOf<ReturnType<Transfer['paths']>[number]['path']>().toEqualTypeOf<
      'local' | 'mapped' | 'copy-engine' | 'sendrecv'
    >();
    // @ts-expect-error there is no such path
    void prepareTransfer(comm, plan, { path: 'nvlink' });
    // @ts-expect-error SMs by rank belong to the world
    void prepareTransfer(comm, plan, { sms: [28, 4] });
    // @ts-expect-error the option is called verify
    void prepareTransfer(comm, plan, { verfiy: true });
    // @ts-expect-error the option is called verify
    void reshard(comm, {}, { verfiy: true });
  });

  it('take memory as a buffer or a range of one', () => {
    const side = { layout, memory: { buffer, byteOffset: 256 } };
    expectTypeOf(
      reshard(comm, { w: { source: side, destination: { layout, memory: buffer } } }),
    ).resolves.toEqualTypeOf<void>();
    // @ts-expect-error memory is device memory
    void reshard(comm, { w: { source: { layout, memory: new Uint8Array(1) }, destination: { layout } } });
  });
});

describe('refits', () => {
  it('take parallelism as text or sizes', () => {
    expectTypeOf(parallelism('tp=4').tp).toEqualTypeOf<number>();
    expectTypeOf(refit({ from: 'tp=2', to: { tp: 4 } })).resolves.toEqualTypeOf<RefitResult>();
    // @ts-expect-error there is no such size
    void refit({ from: { tensorParallel: 2 }, to: 'tp=1' });
  });
});
