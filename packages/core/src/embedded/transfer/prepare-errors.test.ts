// SPDX-License-Identifier: Apache-2.0
// Every way in which ranks refuse to prepare a transfer: together, by name, and without getting out of step.

import { describe, expect, it } from 'vitest';
import type { PrepareConfig } from '../../contract/index.js';
import type { ErrorCode } from '../../errors/codes.js';
import {
  bind,
  code,
  error,
  filled,
  inWorld,
  ok,
  prepareAll,
  programs,
  type TestMove,
  type TestWorld,
  value,
} from '../harness.test-util.js';

const zeros = (bytes: number): Uint8Array => new Uint8Array(bytes);

/** One tensor from rank 0 to rank 1, prepared with one thing changed per rank. */
async function prepareWith(
  world: TestWorld,
  change: (config: PrepareConfig, rank: number) => PrepareConfig,
): Promise<ReturnType<typeof error>[]> {
  const source = filled(world, 0, zeros(64));
  const destination = filled(world, 1, zeros(64));
  const plan = programs(2, [{ from: 0, to: 1, inner: 64 }]);
  const outcomes = await Promise.all(
    world.ranks.map((handle, rank) =>
      world.m2n.prepareTransfer(
        handle,
        change(
          {
            program: plan[rank]!,
            sources: bind([rank === 0 ? source : 0]),
            destinations: bind([rank === 1 ? destination : 0]),
            verify: true,
            path: 'auto',
          },
          rank,
        ),
      ),
    ),
  );
  return outcomes.map(error);
}

describe('prepareTransfer refuses on all ranks', () => {
  type Change = (config: PrepareConfig, rank: number) => PrepareConfig;
  const onRank =
    (at: number, change: (config: PrepareConfig) => PrepareConfig): Change =>
    (config, rank) =>
      rank === at ? change(config) : config;
  const program =
    (change: object): ((config: PrepareConfig) => PrepareConfig) =>
    (config) => ({
      ...config,
      program: { ...config.program, ...change },
    });
  const sends =
    (change: object): ((config: PrepareConfig) => PrepareConfig) =>
    (config) => ({
      ...config,
      program: { ...config.program, sends: { ...config.program.sends, ...change } },
    });
  const cases: readonly (readonly [string, ErrorCode, string, Change])[] = [
    ['another plan', 'ERR_DISAGREEMENT', 'plan digest', onRank(1, program({ digest: 'another' }))],
    [
      'another verify',
      'ERR_DISAGREEMENT',
      'plan digest',
      onRank(1, (config) => ({ ...config, verify: false })),
    ],
    [
      'the program of another rank',
      'ERR_INVALID_ARGUMENT',
      'program of rank 1',
      onRank(0, program({ rank: 1 })),
    ],
    ['another world size', 'ERR_INVALID_ARGUMENT', '3 ranks', onRank(0, program({ size: 3 }))],
    ['no receives', 'ERR_INVALID_ARGUMENT', 'receives', onRank(0, program({ receives: undefined }))],
    [
      'an unknown peer',
      'ERR_INVALID_ARGUMENT',
      'peer 7',
      onRank(1, program({ receivePeers: Int32Array.of(7) })),
    ],
    [
      'an unknown peer of a move',
      'ERR_INVALID_ARGUMENT',
      'peer 5',
      onRank(0, sends({ peer: Int32Array.of(5) })),
    ],
    ['an unknown stage', 'ERR_INVALID_ARGUMENT', 'stage 2', onRank(0, sends({ stage: Uint8Array.of(2) }))],
    ['short arrays', 'ERR_INVALID_ARGUMENT', 'shorter', onRank(0, sends({ counts: Float64Array.of(1) }))],
    [
      'a negative offset',
      'ERR_INVALID_ARGUMENT',
      '-1',
      onRank(0, sends({ sourceOffset: Float64Array.of(-1) })),
    ],
    [
      'an unknown cast',
      'ERR_INVALID_ARGUMENT',
      'transform',
      onRank(0, sends({ transform: Uint16Array.of(500) })),
    ],
    [
      'a sender nobody expects',
      'ERR_DISAGREEMENT',
      'does not expect',
      onRank(1, program({ receivePeers: new Int32Array(0) })),
    ],
    [
      'a sender who does not send',
      'ERR_DISAGREEMENT',
      'expects bytes',
      onRank(0, program({ receivePeers: Int32Array.of(1) })),
    ],
    [
      'receives of another tensor',
      'ERR_INVALID_ARGUMENT',
      'tensor 4',
      onRank(1, (config) => ({
        ...config,
        program: {
          ...config.program,
          receives: { ...config.program.receives!, tensor: Int32Array.of(4) },
        },
      })),
    ],
    [
      'receives that the sender does not send',
      'ERR_DISAGREEMENT',
      'do not agree',
      onRank(1, (config) => ({
        ...config,
        program: { ...config.program, receives: { ...config.program.receives!, stage: Uint8Array.of(1) } },
      })),
    ],
    [
      'an unbound source',
      'ERR_INVALID_ARGUMENT',
      'no source',
      onRank(0, (config) => ({ ...config, sources: bind([0]) })),
    ],
    [
      'an unbound destination',
      'ERR_INVALID_ARGUMENT',
      'no destination',
      onRank(1, (config) => ({ ...config, destinations: bind([0]) })),
    ],
    [
      'a source beyond its buffer',
      'ERR_OUT_OF_BOUNDS',
      'source tensor 0',
      onRank(0, (config) => ({ ...config, sources: bind([...config.sources.buffer], [1]) })),
    ],
    [
      'a destination beyond its buffer',
      'ERR_OUT_OF_BOUNDS',
      'destination tensor 0',
      onRank(1, (config) => ({ ...config, destinations: bind([...config.destinations.buffer], [1]) })),
    ],
    [
      'a byte offset that is none',
      'ERR_INVALID_ARGUMENT',
      'byte offset',
      onRank(1, (config) => ({ ...config, destinations: bind([...config.destinations.buffer], [0.5]) })),
    ],
    [
      'a handle that is none',
      'ERR_INVALID_ARGUMENT',
      'sources[0]',
      onRank(0, (config) => ({ ...config, sources: bind([999_999]) })),
    ],
  ];

  it.each(cases)('%s', async (_name, name, text, change) => {
    await inWorld(2, {}, async (world) => {
      const errors = await prepareWith(world, change);
      expect(errors.map((record) => record.code)).toEqual([code(name), code(name)]);
      expect(errors[0]!.detail).toContain(text);
      expect(errors.map((record) => record.rank)).toEqual([0, 1]);
      expect(world.runtime.poisonOf(world.ranks[0]!)).toBeUndefined();
      // Refused together, the ranks are still in step.
      const moves: TestMove[] = [{ from: 0, to: 1, inner: 4 }];
      const [a, b] = [filled(world, 0, zeros(4)), filled(world, 1, zeros(4))];
      for (const outcome of await prepareAll(world, moves, [[a], [0]], [[0], [b]])) value(outcome);
    });
  });

  it('unsorted moves', async () => {
    await inWorld(1, {}, async (world) => {
      const buffer = filled(world, 0, zeros(64));
      const plan = programs(1, [
        { from: 0, to: 0, inner: 4, tensor: 0 },
        { from: 0, to: 0, inner: 4, tensor: 1 },
      ])[0]!;
      const unsorted = { ...plan, sends: { ...plan.sends, tensor: Int32Array.of(1, 0) } };
      const record = error(
        await world.m2n.prepareTransfer(world.ranks[0]!, {
          program: unsorted,
          sources: bind([buffer, buffer]),
          destinations: bind([buffer, buffer]),
          verify: false,
          path: 'auto',
        }),
      );
      expect([record.code, record.detail.includes('not sorted')]).toEqual([
        code('ERR_INVALID_ARGUMENT'),
        true,
      ]);
    });
  });

  it('buffers of other ranks and freed ones', async () => {
    await inWorld(2, {}, async (world) => {
      const own = filled(world, 0, zeros(16));
      const other = filled(world, 1, zeros(16));
      const moves: TestMove[] = [{ from: 0, to: 1, inner: 16 }];
      const foreign = await prepareAll(world, moves, [[other], [0]], [[0], [other]]);
      expect(foreign.map((outcome) => error(outcome).code)).toEqual(
        [0, 1].map(() => code('ERR_FOREIGN_OBJECT')),
      );
      ok(world.runtime, world.runtime.freeBuffer(own));
      const freed = await prepareAll(world, moves, [[own], [0]], [[0], [other]]);
      expect(error(freed[1]!)).toMatchObject({ code: code('ERR_DISPOSED'), rank: 1, peer: 0 });
    });
  });
});

it('a falsified plan is a disagreement that names the rank', async () => {
  await inWorld(4, {}, async (world) => {
    const { runtime, faults, ranks } = world;
    ok(runtime, faults.disagree(ranks[2]!, 'prepareTransfer'));
    const none = ranks.map(() => []);
    const outcomes = await prepareAll(world, [], none, none);
    for (const outcome of outcomes)
      expect(error(outcome)).toMatchObject({ code: code('ERR_DISAGREEMENT'), peer: 2 });
    for (const outcome of await prepareAll(world, [], none, none)) value(outcome);
  });
});

it('a rank that does not come to prepare is named', async () => {
  await inWorld(3, { timeoutMs: 50 }, async (world) => {
    const [program] = programs(3, []);
    const config: PrepareConfig = {
      program: program!,
      sources: bind([]),
      destinations: bind([]),
      verify: false,
      path: 'auto',
    };
    const record = error(await world.m2n.prepareTransfer(world.ranks[0]!, config));
    expect(record).toMatchObject({ code: code('ERR_TIMEOUT'), op: 'prepareTransfer', rank: 0, peer: 1 });
    expect(record.detail).toContain('ranks 1, 2');
  });
});
