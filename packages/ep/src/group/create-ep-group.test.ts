// SPDX-License-Identifier: Apache-2.0
// Groups are made by all ranks or by none, live in memory of anybody's, and leave nothing behind.

import { type Communicator, localWorld, NcclExtError, type World } from '@nccl-ext/core';
import { backendOf } from '@nccl-ext/core/extend';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EpConfig } from '../config/ep-config.js';
import { epMemory } from '../memory/ep-memory.js';
import { layoutOf } from '../memory/layout-of.js';
import { createEpGroup } from './create-ep-group.js';

const config: EpConfig = { experts: 6, topK: 2, hidden: 16, dtype: 'f32', maxTokensPerRank: 4 };

let world: World;
beforeEach(async () => {
  world = await localWorld({ ranks: 3, backend: 'embedded', timeoutMs: 2000 });
});
afterEach(() => world.dispose());

/** What each rank got: an error or undefined. */
async function attempts(configOf: (comm: Communicator) => EpConfig) {
  const outcomes = await Promise.allSettled(world.ranks.map((comm) => createEpGroup(comm, configOf(comm))));
  return outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason : undefined));
}

describe('agreement', () => {
  it.each<[string, Partial<EpConfig>]>([
    ['topK', { topK: 3 }],
    ['hidden', { hidden: 32 }],
    ['dtype', { dtype: 'bf16' }],
    ['maxTokensPerRank', { maxTokensPerRank: 5 }],
    ['receiveBudget', { receiveBudget: 9 }],
    ['reduction', { reduction: 'token' }],
    ['contexts', { contexts: 5 }],
    ['timeoutMs', { timeoutMs: 1234 }],
    ['mask', { mask: true }],
    ['debugFill', { debugFill: 7 }],
    ['expand', { expand: 'sender' }],
    ['sms', { sms: 3 }],
    [
      'placement',
      {
        experts: {
          count: 6,
          placement: [
            [0, 1],
            [3, 2],
            [4, 5],
          ],
        },
      },
    ],
    [
      'replicaRule',
      {
        experts: {
          count: 6,
          placement: [
            [0, 1],
            [2, 3],
            [4, 5],
          ],
          replicaRule: 'local-first',
        },
      },
    ],
  ])('names %s and the rank that differs', async (field, change) => {
    for (const error of await attempts(({ rank }) => (rank === 1 ? { ...config, ...change } : config)))
      expect(error).toMatchObject({ code: 'ERR_DISAGREEMENT', field, peer: 1 });
  });

  it('keeps no handle of a layer whose buffers do not fit', async () => {
    await world.run(async (comm) => {
      const group = await createEpGroup(comm, { ...config, hidden: 2 ** 30, maxTokensPerRank: 2 ** 14 });
      const experts = { enqueue: () => undefined };
      expect(() => group.layer({ layout: 'flat', experts })).toThrow(
        expect.objectContaining({ code: 'ERR_OUT_OF_MEMORY' }),
      );
      expect(group.memory().handles).toBe(0);
      await group.dispose();
    });
  });

  it('refuses everywhere what one rank refuses, and works afterwards', async () => {
    const [zero, one, two] = await attempts(({ rank }) => (rank === 1 ? { ...config, hidden: 3 } : config));
    expect(one).toMatchObject({ code: 'ERR_INVALID_ARGUMENT', field: 'hidden' });
    for (const other of [zero, two]) expect(other).toMatchObject({ code: 'ERR_RANK_LOST', peer: 1 });
    expect(await attempts(() => config)).toEqual([undefined, undefined, undefined]);
  });

  it('finds what a fault makes differ', async () => {
    world.faults.disagree(2, 'createEpGroup');
    for (const error of await attempts(() => config)) expect(error).toSatisfy(NcclExtError.is);
  });
});

describe('memory', () => {
  it('takes what epMemory says, and gives all of it back', async () => {
    const { runtime } = backendOf(world.ranks[0]!);
    const before = runtime.memoryUsage().allocatedBytes;
    for (let round = 0; round < 3; round++) {
      const groups = await Promise.all(world.ranks.map((comm) => createEpGroup(comm, config)));
      const handles = groups.map((group) => group.createHandle({ layout: 'flat' }));
      const { group, handle } = epMemory(config, 3);
      expect(groups[0]!.memory()).toMatchObject({
        contexts: group.contexts,
        calls: group.calls,
        handles: handle.bytes,
        total: group.bytes + handle.bytes,
      });
      await handles[0]!.dispose();
      expect(groups[0]!.memory().handles).toBe(0);
      await Promise.all(groups.map((made) => made.dispose()));
      expect(handles[1]!.disposed).toBe(true);
      expect(() => groups[1]!.createHandle({ layout: 'flat' })).toThrow(
        expect.objectContaining({ code: 'ERR_DISPOSED' }),
      );
    }
    expect(runtime.memoryUsage().allocatedBytes).toBe(before);
  });

  it("is the caller's where the caller has it", async () => {
    const { group: groupLayout, handle: handleLayout } = layoutOf(config, 3);
    const groups = await Promise.all(
      world.ranks.map((comm) => {
        const buffer = comm.allocate(256 + groupLayout.bytes);
        const handleBuffer = comm.allocate(handleLayout.bytes);
        const memory = { group: { buffer, byteOffset: 256 }, handle: () => handleBuffer };
        return createEpGroup(comm, { ...config, memory });
      }),
    );
    for (const group of groups) group.createHandle({ layout: 'packed' });
    await Promise.all(groups.map((group) => group.dispose()));
    expect(world.ranks.every((comm) => !comm.disposed)).toBe(true);
  });

  it('comes from an allocator, which hears when it is free', async () => {
    const heard: string[] = [];
    const groups = await Promise.all(
      world.ranks.map((comm) =>
        createEpGroup(comm, {
          ...config,
          memory: {
            allocate(bytes, purpose) {
              if (comm.rank === 0) heard.push(`${purpose} ${bytes}`);
              return comm.allocate(bytes);
            },
            free(range, purpose) {
              if (comm.rank === 0) heard.push(`free ${purpose}`);
              if ('dispose' in range) void range.dispose();
            },
          },
        }),
      ),
    );
    for (const group of groups) group.createHandle({ layout: 'expert-major' });
    await Promise.all(groups.map((group) => group.dispose()));
    const { group, handle } = layoutOf(config, 3);
    expect(heard).toEqual([`group ${group.bytes}`, `handle ${handle.bytes}`, 'free handle', 'free group']);
  });

  it('that does not fit is refused on its rank, and the others learn who refused', async () => {
    const [zero, one] = await attempts((comm) => ({
      ...config,
      ...(comm.rank === 1 ? { memory: { group: comm.allocate(512) } } : {}),
    }));
    expect(one).toMatchObject({ code: 'ERR_OUT_OF_BOUNDS' });
    expect(zero).toMatchObject({ code: 'ERR_RANK_LOST', peer: 1 });
  });
});
