// SPDX-License-Identifier: Apache-2.0
// What only the device can find ends the operation on every rank, moves nothing, and leaves the group usable.

import { type Communicator, localWorld, type NcclExtError, type World } from '@nccl-ext/core';
import { epLayouts } from '@nccl-ext/core/contract';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EpConfig } from '../config/ep-config.js';
import { createEpGroup } from '../group/create-ep-group.js';
import type { EpGroup } from '../group/ep-group.js';
import { allocateLayerBuffers, type LayerBuffers } from '../layer/layer-buffers.js';
import { bytesOf, place, poisoned, valuesOf } from '../oracle/on-device.test-util.js';
import type { EpHandle } from './ep-handle.js';

const [topK, hidden, most, size] = [2, 8, 4, 3];
const config: EpConfig = { experts: 4, topK, hidden, dtype: 'f32', maxTokensPerRank: most };

let world: World;
beforeEach(async () => {
  world = await localWorld({ ranks: 2, backend: 'embedded', timeoutMs: 2000 });
});
afterEach(() => world.dispose());

/** Routes and dispatches `ids` on every rank; returns the error of each rank, or undefined. */
async function step(
  groups: readonly EpGroup[],
  handles: readonly EpHandle[],
  buffers: readonly LayerBuffers[],
  idsOf: (rank: number) => readonly number[],
  weightsOf: readonly number[] = Array(size * topK).fill(0.5),
): Promise<(NcclExtError | undefined)[]> {
  return Promise.all(
    groups.map(async ({ communicator: comm }, rank) => {
      const handle = handles[rank]!;
      const { rows: tokens, expertCounts, topkIdx, topkWeights } = buffers[rank]!;
      const stream = comm.createStream();
      const weights = place(comm, 'f32', [size, topK], weightsOf);
      const x = place(comm, 'f32', [size, hidden], Array(size * hidden).fill(rank + 1));
      const out = {
        tokens,
        ...(handle.layout === 'expert-major' ? { expertCounts } : {}),
        ...(topkIdx === undefined ? {} : { topkIdx }),
        ...(topkWeights === undefined ? {} : { topkWeights }),
      };
      try {
        const low = handle.layout === 'expert-major' || handle.layout === 'rank-major';
        handle.route(place(comm, 'i32', [size, topK], idsOf(rank)), low ? { stream } : { stream, weights });
        handle.dispatch(x, { stream, weights, out } as never);
        await stream.synchronize();
        return undefined;
      } catch (error) {
        return error as NcclExtError;
      }
    }),
  );
}

async function open(layout: (typeof epLayouts)[number], change: Partial<EpConfig> = {}) {
  const groups = await Promise.all(
    world.ranks.map((comm: Communicator) => createEpGroup(comm, { ...config, ...change })),
  );
  const handles = groups.map((group) => group.createHandle({ layout }) as unknown as EpHandle);
  const buffers = handles.map((handle) => allocateLayerBuffers(handle));
  for (const { rows } of buffers) bytesOf(rows).fill(0xaa);
  return [groups, handles, buffers] as const;
}

const sound = [0, 1, 2, 3, 1, 2];

describe.each(epLayouts)('%s', (layout) => {
  it.each<[string, readonly number[], { token: number; k: number; id: number }]>([
    ['out of range', [0, 1, 2, 4, 1, 2], { token: 1, k: 1, id: 4 }],
    ['below -1', [0, 1, 2, 3, -2, 2], { token: 2, k: 0, id: -2 }],
    ['twice in a token', [0, 1, 3, 3, 1, 2], { token: 1, k: 1, id: 3 }],
  ])('ids %s', async (_, wrong, { token, k, id }) => {
    const parts = await open(layout);
    const [, one] = await step(...parts, (rank) => (rank === 1 ? wrong : sound)).then((errors) => {
      expect(errors[0]).toMatchObject({ code: 'ERR_ROUTING', peer: 1 });
      return errors;
    });
    expect(one).toMatchObject({ code: 'ERR_ROUTING', rank: 1 });
    for (const number of [token, k, id]) expect(one!.message).toContain(String(number));
    for (const { rows } of parts[2]) expect(new Set(bytesOf(rows))).toEqual(new Set([0xaa]));
    expect(await step(...parts, () => sound)).toEqual([undefined, undefined]);
    expect(valuesOf(parts[2][0]!.rows)).toContain(2);
  });
});

describe('overflow', () => {
  const hot = [0, 1, 0, 1, 0, 1];

  it.each(['flat', 'packed'] as const)(
    'of a budget, in %s, tells the demand on every rank',
    async (layout) => {
      const demand = layout === 'flat' ? 2 * size : 2 * size * topK;
      const parts = await open(layout, { receiveBudget: demand - 1 });
      const errors = await step(...parts, () => hot);
      expect(errors[0]).toMatchObject({ code: 'ERR_OVERFLOW', rank: 0, expected: demand - 1, seen: demand });
      expect(errors[1]).toMatchObject({ code: 'ERR_OVERFLOW', peer: 0 });
      expect(
        await step(...parts, () => [0, 2, 1, 3, 0, 2].slice(0, 6).map((id, i) => (i < 4 ? id : -1))),
      ).toEqual([undefined, undefined]);
    },
  );

  it('of an eager buffer tells the demand on every rank', async () => {
    const [groups, handles, buffers] = await open('flat');
    const small = buffers.map((buffer) => ({
      ...buffer,
      rows: { ...buffer.rows, shape: [2 * size - 1, hidden] },
      topkIdx: undefined,
      topkWeights: undefined,
    }));
    const errors = await step(groups, handles, small, () => hot);
    expect(errors[0]).toMatchObject({
      code: 'ERR_OVERFLOW',
      rank: 0,
      expected: 2 * size - 1,
      seen: 2 * size,
    });
    expect(errors[1]).toMatchObject({ code: 'ERR_OVERFLOW', peer: 0 });
    expect(await step(groups, handles, buffers, () => hot)).toEqual([undefined, undefined]);
  });

  it.each([
    ['drop-by-source', 'flat', 4, [1, 1, 1, 2]],
    // Token t of both ranks has weights 0.5 + t and less: tokens 1 and 2 stay.
    ['drop-by-weight', 'flat', 4, [1, 1, 2, 2]],
    // Six entries per source: expert 0 keeps those of rank 0 and the first of rank 1, expert 1 those of rank 0.
    ['drop-by-source', 'packed', 7, [1, 1, 1, 2, 1, 1, 1]],
  ] as const)('%s keeps what fits, in %s', async (overflow, layout, receiveBudget, kept) => {
    const parts = await open(layout, { receiveBudget, overflow });
    const weights = [0.5, 0.25, 1.5, 0.25, 2.5, 0.25];
    expect(await step(...parts, () => hot, weights)).toEqual([undefined, undefined]);
    expect(valuesOf(parts[2][0]!.rows).filter((_, i) => i % hidden === 0)).toEqual(kept);
    const demand = layout === 'flat' ? 2 * size : 2 * size * topK;
    expect(await parts[1][0]!.counts()).toMatchObject({ rows: receiveBudget, demand });
  });

  it('combines nothing of a dropped token', async () => {
    const parts = await open('flat', { receiveBudget: 4, overflow: 'drop-by-source' });
    expect(await step(...parts, () => hot)).toEqual([undefined, undefined]);
    const results = await Promise.all(
      world.ranks.map(async (comm, rank) => {
        const stream = comm.createStream();
        const y = poisoned(comm, 'f32', [size, hidden]);
        parts[1][rank]!.combine(parts[2][rank]!.rows, { stream, out: { tokens: y } } as never);
        await stream.synchronize();
        return valuesOf(y).filter((_, i) => i % hidden === 0);
      }),
    );
    expect(results).toEqual([
      [1, 1, 1],
      [2, 0, 0],
    ]);
  });
});

it('operations that differ between ranks are named', async () => {
  const [groups, handles] = await open('flat');
  const others = groups.map((group) => group.createHandle({ layout: 'flat' }));
  const errors = await Promise.all(
    groups.map(async ({ communicator: comm }, rank) => {
      const stream = comm.createStream();
      const ids = place(comm, 'i32', [1, topK], [0, 1]);
      (rank === 0 ? handles[0]! : others[1]!).route(ids, { stream });
      return stream.synchronize().then(
        () => undefined,
        (error: NcclExtError) => error,
      );
    }),
  );
  for (const error of errors) expect(error).toMatchObject({ code: 'ERR_DISAGREEMENT' });
});
