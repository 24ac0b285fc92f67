// SPDX-License-Identifier: Apache-2.0
// A reshard that cannot run on one rank runs on none, and leaves nothing behind.

import { type Communicator, layout, localWorld, mesh, type Stream, shard, type World } from '@nccl-ext/core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { reshard } from './reshard.js';

const shape = [8, 8];
const source = layout({ shape, dtype: 'f32', mesh: mesh({ tp: 2 }), placements: [shard(0)] });
const destination = layout({ shape, dtype: 'f32', mesh: mesh({ tp: 2 }), placements: [shard(1)] });

let world: World;
beforeEach(async () => {
  world = await localWorld({ ranks: 2, backend: 'embedded', timeoutMs: 60_000 });
});
afterEach(() => world.dispose());

type Arguments = [Parameters<typeof reshard>[1], Parameters<typeof reshard>[2]];

/** On all ranks; `change` makes what rank 1 passes. Returns what each rank got. */
async function runWith(change: (right: Arguments) => Arguments) {
  const attempts = world.ranks.map((comm) => {
    const [from, to] = [comm.allocate(128), comm.allocate(128)];
    from.view('f32').fill(comm.rank + 1);
    const tensors = {
      w: { source: { layout: source, memory: from }, destination: { layout: destination, memory: to } },
    };
    const passed: Arguments = comm.rank === 1 ? change([tensors, {}]) : [tensors, {}];
    return reshard(comm, ...passed).then(() => [...new Set(to.view('f32'))]);
  });
  const outcomes = await Promise.allSettled(attempts);
  return outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason));
}

/** On all ranks; `streamOf` says where rank 1 runs. */
const run = (streamOf: () => Stream | undefined) => runWith(([tensors]) => [tensors, { stream: streamOf() }]);

const full = (comm: Communicator): Stream => {
  const [stream, buffer] = [comm.createStream(), comm.allocate(8)];
  stream.callHost(() => new Promise((resolve) => setTimeout(resolve, 100)));
  while (stream.queued < 256) stream.fill(buffer, 0);
  return stream;
};

describe('reshard', () => {
  it.each<[string, () => Stream, string]>([
    ['of another rank', () => world.ranks[0]!.createStream(), 'ERR_FOREIGN_OBJECT'],
    ['that is none', () => 7 as never, 'ERR_INVALID_ARGUMENT'],
    ['that is null', () => null as never, 'ERR_INVALID_ARGUMENT'],
    [
      'that was disposed',
      () => {
        const stream = world.ranks[1]!.createStream();
        void stream.dispose();
        return stream;
      },
      'ERR_DISPOSED',
    ],
    ['that is full', () => full(world.ranks[1]!), 'ERR_QUEUE_FULL'],
  ])('refuses a stream %s on every rank, and goes on', async (_, streamOf, code) => {
    expect(await run(streamOf)).toMatchObject([{ code: 'ERR_RANK_LOST', peer: 1 }, { code }]);
    expect(await run(() => undefined)).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  const narrow = layout({ shape: [8, 4], dtype: 'f32', mesh: mesh({ tp: 2 }), placements: [shard(1)] });
  it.each<[string, (right: Arguments) => Arguments, string]>([
    [
      'layouts that do not fit',
      ([{ w }]) => [{ w: { ...w!, destination: { ...w!.destination, layout: narrow } } }, {}],
      'ERR_SHAPE_MISMATCH',
    ],
    [
      'a layout that is none',
      ([{ w }]) => [{ w: { ...w!, source: {} as never } }, {}],
      'ERR_INVALID_ARGUMENT',
    ],
    ['a tensor that is none', () => [{ w: 7 as never }, {}], 'ERR_INVALID_ARGUMENT'],
    ['no tensors', () => [undefined as never, {}], 'ERR_INVALID_ARGUMENT'],
    ['options that are none', ([tensors]) => [tensors, null as never], 'ERR_INVALID_ARGUMENT'],
    ['an unknown option', ([tensors]) => [tensors, { verfiy: true } as never], 'ERR_INVALID_ARGUMENT'],
  ])('refuses %s on every rank, and goes on', async (_, change, code) => {
    expect(await runWith(change)).toMatchObject([{ code: 'ERR_RANK_LOST', peer: 1 }, { code }]);
    expect(await run(() => undefined)).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  it('refuses on every rank where one can make no stream, and disposes those that were made', async () => {
    const [first, second] = world.ranks as [Communicator, Communicator];
    const made = vi.spyOn(first, 'createStream');
    vi.spyOn(second, 'createStream').mockImplementationOnce(() => {
      throw new Error('no more streams');
    });
    const [lost, own] = await run(() => undefined);
    expect(lost).toMatchObject({ code: 'ERR_RANK_LOST', peer: 1 });
    expect(own).toMatchObject({ message: 'no more streams' });
    expect(made.mock.results.map(({ value }) => (value as Stream).disposed)).toEqual([true]);
  });
});
