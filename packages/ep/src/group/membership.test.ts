// SPDX-License-Identifier: Apache-2.0
// A rank that stops is observed, leaves by agreement, and comes back by agreement.

import { type Communicator, localWorld, type NcclExtError } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import type { EpHandle } from '../handle/ep-handle.js';
import { place, poisoned, valuesOf } from '../oracle/on-device.test-util.js';
import { createEpGroup } from './create-ep-group.js';

const [topK, hidden, ranks] = [3, 8, 3];
const config = {
  experts: 3,
  topK,
  hidden,
  dtype: 'f32',
  maxTokensPerRank: 1,
  mask: true,
  timeoutMs: 300,
} as const;

/** One token to all experts, with weights 1, 2 and 4; returns what combine gives. */
async function step(comm: Communicator, handle: EpHandle, renormalize = false): Promise<number> {
  const stream = comm.createStream();
  const low = handle.layout === 'expert-major';
  handle.route(place(comm, 'i32', [1, topK], [0, 1, 2]), { stream });
  const tokens = poisoned(comm, 'f32', low ? [1, ranks, hidden] : [ranks, hidden]);
  const out = { tokens, ...(low ? { expertCounts: poisoned(comm, 'i32', [1]) } : {}) };
  const weights = place(comm, 'f32', [1, topK], [1, 2, 4]);
  handle.dispatch(place(comm, 'f32', [1, hidden], Array(hidden).fill(1)), {
    stream,
    weights,
    renormalize,
    out,
  } as never);
  const y = poisoned(comm, 'f32', [1, hidden]);
  handle.combine(tokens, { stream, out: { tokens: y } });
  await stream.synchronize();
  return valuesOf(y)[0]!;
}

const failure = (result: Promise<unknown>): Promise<NcclExtError | undefined> =>
  result.then(
    () => undefined,
    (error: NcclExtError) => error,
  );

describe.each(['expert-major', 'flat'] as const)('%s', (layout) => {
  it('loses a rank, goes on without it, and takes it back', async () => {
    const world = await localWorld({ ranks, backend: 'embedded', timeoutMs: 2000 });
    try {
      const groups = await Promise.all(world.ranks.map((comm) => createEpGroup(comm, config)));
      const handles = groups.map((group) => group.createHandle({ layout }) as unknown as EpHandle);
      const run = (who: readonly number[], renormalize = false) =>
        Promise.all(who.map((rank) => step(world.ranks[rank]!, handles[rank]!, renormalize)));
      const first = groups[0]!.membership.epoch;
      const whole = layout === 'flat' ? 3 : 7;
      expect(await run([0, 1, 2])).toEqual([whole, whole, whole]);

      world.faults.stop(2);
      for (const error of await Promise.all(
        [0, 1].map((rank) => failure(step(world.ranks[rank]!, handles[rank]!))),
      ))
        expect(error).toMatchObject({ code: 'ERR_TIMEOUT', peer: 2 });
      expect(groups[0]!.observed()).toEqual([2]);
      expect(groups[0]!.membership).toEqual({ epoch: first, active: [0, 1, 2] });
      expect(await failure(step(world.ranks[0]!, handles[0]!))).toMatchObject({ code: 'ERR_MEMBERSHIP' });

      const epochs = await Promise.all([0, 1].map((rank) => groups[rank]!.changeMembership([0, 1])));
      expect(epochs).toEqual([first + 1, first + 1]);
      expect(groups[1]!.membership).toEqual({ epoch: first + 1, active: [0, 1] });
      expect(groups[1]!.observed()).toEqual([]);
      const stream = world.ranks[0]!.createStream();
      expect(() =>
        handles[0]!.combine(poisoned(world.ranks[0]!, 'f32', [3, hidden]), { stream, out: {} } as never),
      ).toThrow(expect.objectContaining({ code: 'ERR_INVALID_STATE' }));
      const rest = layout === 'flat' ? 2 : 3;
      expect(await run([0, 1])).toEqual([rest, rest]);
      if (layout === 'expert-major') expect(await run([0, 1], true)).toEqual([1, 1]);

      world.faults.resume(2);
      expect(await failure(step(world.ranks[2]!, handles[2]!))).toMatchObject({ code: 'ERR_MEMBERSHIP' });
      const back = await Promise.all(groups.map((group) => group.changeMembership([0, 1, 2])));
      expect(new Set(back).size).toBe(1);
      expect(await run([0, 1, 2])).toEqual([whole, whole, whole]);
    } finally {
      world.faults.resume(2);
      await world.dispose();
    }
  });
});

it('a change that not all come to times out, names who is missing, and changes nothing', async () => {
  const world = await localWorld({ ranks, backend: 'embedded', timeoutMs: 2000 });
  try {
    const groups = await Promise.all(world.ranks.map((comm) => createEpGroup(comm, config)));
    const before = groups[0]!.membership;
    const errors = await Promise.all(
      [0, 1].map((rank) => failure(groups[rank]!.changeMembership([0, 1, 2]))),
    );
    for (const error of errors) expect(error).toMatchObject({ code: 'ERR_TIMEOUT', peer: 2 });
    expect(groups[0]!.membership).toEqual(before);
  } finally {
    await world.dispose();
  }
});
