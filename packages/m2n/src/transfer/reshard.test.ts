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

/** On all ranks; `streamOf` says where rank 1 runs. Returns what each rank got. */
async function run(streamOf: () => Stream | undefined) {
  const attempts = world.ranks.map((comm) => {
    const [from, to] = [comm.allocate(128), comm.allocate(128)];
    from.view('f32').fill(comm.rank + 1);
    const tensors = {
      w: { source: { layout: source, memory: from }, destination: { layout: destination, memory: to } },
    };
    return reshard(comm, tensors, comm.rank === 1 ? { stream: streamOf() } : {}).then(() => [
      ...new Set(to.view('f32')),
    ]);
  });
  const outcomes = await Promise.allSettled(attempts);
  return outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason));
}

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
