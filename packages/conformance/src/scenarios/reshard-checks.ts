// SPDX-License-Identifier: Apache-2.0
// The one-call form of a transfer, and what a plan promises about its load.

import { presetTopology, replicate, shard, singleDomain } from '@nccl-ext/core';
import { reshard } from '@nccl-ext/m2n';
import type { CheckCase, TensorSpec } from '../cases/case.js';
import { grid, line } from '../cases/side.js';
import { streamsOf } from '../run/case-streams.js';
import { type CheckContext, requireThat } from '../run/check-context.js';
import { MoveSession } from '../run/move-session.js';
import { layoutOf, planOf } from '../run/plan-of.js';
import { check, contentOf } from './crossed-move.js';

const tensors: readonly TensorSpec[] = [
  {
    shape: [96, 64],
    dtype: 'bf16',
    source: line(8, shard(0)),
    destination: grid(2, 4, [replicate(), shard(1)], 8),
  },
  {
    shape: [64],
    dtype: 'f32',
    castTo: 'bf16',
    source: line(8, replicate()),
    destination: line(8, shard(0), 8),
  },
];

export const reshardChecks: readonly CheckCase[] = [
  check('groups', 'reshard in one call, with and without a stream', oneCall, { ranks: 16 }),
  check('topologies', 'replicas of a source share the load', sharedLoad, {
    ranks: 1,
    reports: ['alibaba/ROLL#431', 'MoonshotAI/checkpoint-engine#25'],
  }),
];

/** The session only lends its memory and its oracle; nothing is prepared. */
async function oneCall(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: 16 });
  const session = new MoveSession(world, { tensors });
  const streams = streamsOf(world);
  for (const [number, stream] of [undefined, streams].entries()) {
    // The destinations are poisoned and the sources filled before, and all are read after the call.
    const load = session.enqueueRefit(streams, contentOf(number), () => {});
    await Promise.all(streams.map((each) => each.synchronize()));
    requireThat(load.difference() !== undefined, 'destinations are right before anything moved');
    await world.run((communicator) => {
      const { source, destination } = session.ranks[communicator.rank]!;
      const sideOf = (side: typeof source, tensor: number, name: 'source' | 'destination') => {
        const spec = tensors[tensor]!;
        const dtype = name === 'source' ? spec.dtype : (spec.castTo ?? spec.dtype);
        const slot = side.image.slots.find((each) => each.tensor === tensor);
        return {
          layout: layoutOf(spec.shape, dtype, spec[name]),
          memory: slot && side.buffer && { buffer: side.buffer, byteOffset: slot.byteOffset },
        };
      };
      const request = tensors.map((_, tensor) => [
        `weight ${tensor}`,
        { source: sideOf(source, tensor, 'source'), destination: sideOf(destination, tensor, 'destination') },
      ]);
      return reshard(communicator, Object.fromEntries(request), {
        stream: stream?.[communicator.rank],
        verify: true,
      });
    });
    const refit = session.readBack(streams, contentOf(number));
    await Promise.all(streams.map((each) => each.synchronize()));
    const difference = refit.difference();
    requireThat(difference === undefined, `call ${number}: ${difference}`);
  }
}

/** The largest sender carries at most 1 % more than the average. */
async function sharedLoad(): Promise<void> {
  const spec = (source: TensorSpec['source'], destination: TensorSpec['destination']): TensorSpec => ({
    shape: [4096, 1024],
    dtype: 'bf16',
    source,
    destination,
  });
  const moves: Readonly<Record<string, TensorSpec>> = {
    '8 copies to 8 copies': spec(line(8, replicate()), line(8, replicate(), 8)),
    '2 x 4 rows to 4 x 2 columns': spec(
      grid(2, 4, [replicate(), shard(0)]),
      grid(4, 2, [replicate(), shard(1)], 8),
    ),
    '8 copies to 3 rows': spec(line(8, replicate()), line(3, shard(0), 8)),
  };
  for (const [what, move] of Object.entries(moves)) {
    for (const topology of [singleDomain(16), presetTopology('dgx-h100', 16)]) {
      const { maxRankBytes, meanRankBytes } = planOf([move], 16, topology).totals;
      requireThat(
        maxRankBytes <= 1.01 * meanRankBytes,
        `${what}: a source sends ${maxRankBytes} bytes, the average is ${meanRankBytes}`,
      );
    }
  }
}
