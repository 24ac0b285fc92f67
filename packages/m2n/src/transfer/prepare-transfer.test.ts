// SPDX-License-Identifier: Apache-2.0
// What cannot be bound is refused on every rank, by name, before anything moves.

import { type Communicator, layout, localWorld, mesh, shard, type World } from '@nccl-ext/core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createPlan } from '../plan/create-plan.js';
import { type PrepareOptions, prepareTransfer } from './prepare-transfer.js';

const shape = [8, 8];
const source = layout({ shape, dtype: 'f32', mesh: mesh({ tp: 2 }), placements: [shard(0)] });
const destination = layout({ shape, dtype: 'f32', mesh: mesh({ tp: 2 }), placements: [shard(1)] });
const plan = createPlan({ tensors: [{ name: 'w', source, destination }], worldSize: 3 });
const localBytes = 128;

let world: World;
beforeEach(async () => {
  world = await localWorld({ ranks: 3, backend: 'embedded', timeoutMs: 1000 });
});
afterEach(() => world.dispose());

/** Prepares on all ranks; `change` alters what rank 1 passes. Returns what each rank got. */
async function prepare(change: (comm: Communicator, options: PrepareOptions) => PrepareOptions) {
  const attempts = world.ranks.map((comm) => {
    const bound: PrepareOptions =
      comm.rank === 2
        ? {}
        : { sources: { w: comm.allocate(localBytes) }, destinations: { w: comm.allocate(localBytes) } };
    return prepareTransfer(comm, plan, comm.rank === 1 ? change(comm, bound) : bound);
  });
  const outcomes = await Promise.allSettled(attempts);
  return outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason : undefined));
}

describe('prepareTransfer', () => {
  it('prepares with spectators that bind nothing', async () => {
    expect(await prepare((_, options) => options)).toEqual([undefined, undefined, undefined]);
  });

  it('takes another number of SMs on every rank', async () => {
    for (const sms of [0, 1, 64]) {
      expect(await prepare((_, options) => ({ ...options, sms }))).toEqual([undefined, undefined, undefined]);
    }
  });

  it.each<[string, string, (comm: Communicator, options: PrepareOptions) => PrepareOptions]>([
    ['a missing binding', 'ERR_INVALID_ARGUMENT', (_, { sources }) => ({ sources: sources! })],
    [
      'a buffer that is too small',
      'ERR_OUT_OF_BOUNDS',
      (comm, { sources }) => ({ sources: sources!, destinations: { w: comm.allocate(localBytes - 4) } }),
    ],
    [
      'a misaligned offset',
      'ERR_INVALID_ARGUMENT',
      (comm, { sources }) => ({
        sources: sources!,
        destinations: { w: { buffer: comm.allocate(2 * localBytes), byteOffset: 2 } },
      }),
    ],
    [
      'a buffer of another rank',
      'ERR_FOREIGN_OBJECT',
      (_, { sources }) => ({ sources: sources!, destinations: { w: world.ranks[0]!.allocate(localBytes) } }),
    ],
    [
      'a destination over its source',
      'ERR_OVERLAP',
      (comm) => {
        const buffer = comm.allocate(2 * localBytes);
        return { sources: { w: { buffer, byteOffset: 0 } }, destinations: { w: { buffer, byteOffset: 64 } } };
      },
    ],
    ...[null, 5, {}, { buffer: null }, { buffer: { bytes: 128 } }].map(
      (wrong): [string, string, (comm: Communicator, options: PrepareOptions) => PrepareOptions] => [
        `${JSON.stringify(wrong)} for memory`,
        'ERR_INVALID_ARGUMENT',
        (_, { sources }) => ({ sources: sources!, destinations: { w: wrong as never } }),
      ],
    ),
    ['no bindings', 'ERR_INVALID_ARGUMENT', () => ({ sources: null as never })],
    ['no options', 'ERR_INVALID_ARGUMENT', () => null as never],
    ['verify as text', 'ERR_INVALID_ARGUMENT', (_, options) => ({ ...options, verify: 'yes' as never })],
    ...['4', -1, 1.5, 1025, null].map(
      (sms): [string, string, (comm: Communicator, options: PrepareOptions) => PrepareOptions] => [
        `${JSON.stringify(sms)} SMs`,
        'ERR_INVALID_ARGUMENT',
        (_, options) => ({ ...options, sms: sms as never }),
      ],
    ),
    ['a misspelt option', 'ERR_INVALID_ARGUMENT', (_, options) => ({ ...options, verfiy: true }) as never],
    ['an unknown path', 'ERR_INVALID_ARGUMENT', (_, options) => ({ ...options, path: 'pigeon' as never })],
    [
      'a disposed buffer',
      'ERR_DISPOSED',
      (comm, { sources }) => {
        const buffer = comm.allocate(localBytes);
        void buffer.dispose();
        return { sources: sources!, destinations: { w: buffer } };
      },
    ],
  ])('refuses %s on its rank, and the other ranks learn who refused', async (_, code, change) => {
    const [zero, one, two] = await prepare(change);
    expect(one).toMatchObject({ code });
    for (const other of [zero, two]) expect(other).toMatchObject({ code: 'ERR_RANK_LOST', peer: 1 });
  });

  it('names rank and field when one rank wants verification and the others do not', async () => {
    for (const error of await prepare((_, options) => ({ ...options, verify: true }))) {
      expect(error).toMatchObject({ code: 'ERR_DISAGREEMENT', field: 'verify', peer: 1 });
    }
  });

  it('asks for the path of its world unless it is told another', async () => {
    const asking = await localWorld({ ranks: 3, backend: 'embedded', transferPath: 'mapped' });
    try {
      const empty = createPlan({ tensors: [], worldSize: 3 });
      const all = (path?: 'auto' | 'mapped') =>
        asking.ranks.map((comm) => prepareTransfer(comm, empty, comm.rank === 1 && path ? { path } : {}));
      await Promise.all(all('mapped'));
      for (const outcome of await Promise.allSettled(all('auto')))
        expect(outcome).toMatchObject({ reason: { code: 'ERR_DISAGREEMENT', field: 'path', peer: 1 } });
    } finally {
      await asking.dispose();
    }
  });

  it('refuses what is no plan and no communicator', async () => {
    const outcomes = await Promise.allSettled(world.ranks.map((comm) => prepareTransfer(comm, {} as never)));
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ reason: { code: 'ERR_INVALID_ARGUMENT', field: 'plan' } });
    await expect(prepareTransfer({} as never, plan)).rejects.toMatchObject({ field: 'communicator' });
  });

  it('enqueues on streams of its own rank and world only', async () => {
    const empty = createPlan({ tensors: [], worldSize: 3 });
    const transfers = await Promise.all(world.ranks.map((comm) => prepareTransfer(comm, empty)));
    const other = await localWorld({ ranks: 1, backend: 'embedded' });
    try {
      const foreign = expect.objectContaining({ code: 'ERR_FOREIGN_OBJECT', field: 'stream' });
      // As many as it takes for the handle to be that of a stream here.
      for (let i = 0; i < 16; i++) {
        const stream = other.ranks[0]!.createStream();
        expect(() => transfers[0]!.enqueue(stream)).toThrow(foreign);
      }
      expect(() => transfers[0]!.enqueue(world.ranks[1]!.createStream())).toThrow(foreign);
      expect(() => transfers[0]!.enqueue(undefined as never)).toThrow(
        /stream must be a stream, got undefined/,
      );
    } finally {
      await other.dispose();
    }
  });

  it('refuses a plan for another number of ranks', async () => {
    const larger = createPlan({ tensors: [{ name: 'w', source, destination }], worldSize: 4 });
    const outcomes = await Promise.allSettled(world.ranks.map((comm) => prepareTransfer(comm, larger)));
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ reason: { code: 'ERR_INVALID_ARGUMENT', field: 'worldSize' } });
  });

  it('names the rank whose plan differs', async () => {
    const other = createPlan({ tensors: [{ name: 'v', source, destination }], worldSize: 3 });
    const outcomes = await Promise.allSettled(
      world.ranks.map((comm) => {
        const memory = () => comm.allocate(localBytes);
        if (comm.rank === 2) return prepareTransfer(comm, other);
        return prepareTransfer(comm, plan, { sources: { w: memory() }, destinations: { w: memory() } });
      }),
    );
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ reason: { code: 'ERR_DISAGREEMENT', field: 'digest', peer: 2 } });
  });
});
