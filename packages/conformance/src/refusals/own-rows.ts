// SPDX-License-Identifier: Apache-2.0
// What is refused beyond the list of nccl_m2n: layouts that cannot be, elements without a source, memory that does not fit.

import {
  blockCyclic,
  interleaved,
  layout,
  mesh,
  NcclExtError,
  type Placement,
  ranges,
  shard,
  sizes,
  strided,
  topologyFor,
} from '@nccl-ext/core';
import { type Bindings, createPlan, prepareTransfer, reshard } from '@nccl-ext/m2n';
import type { CaseWorld } from '../run/case-world.js';
import type { CheckContext } from '../run/check-context.js';
import { columns, halves, planWith, rowsOf } from './examples.js';
import type { RefusalRow } from './refusal-row.js';

export const ownRows: readonly RefusalRow[] = [
  split('sizes that do not sum to the extent', shard(0, sizes([3, 4])), ['3 + 4 = 7', 'which is 8']),
  split('one size too many', shard(0, sizes([3, 4, 1])), ['sizes', '(2)', 'got 3']),
  split('segments that do not sum to the extent', shard(0, interleaved([5, 2])), ['5 + 2 = 7', 'which is 8']),
  split('strides that do not divide the extent', shard(0, strided(3)), ['groups = 3', '8 = 3 x 2 + 2']),
  split(
    'a range that ends outside',
    shard(
      0,
      ranges([
        [0, 4],
        [4, 9],
      ]),
    ),
    ['[4, 9)', 'which is 8'],
  ),
  refused('a block of nothing', 'ERR_LAYOUT', ['block', '0'], () => blockCyclic(0)),
  refused('a placement for an axis that does not exist', 'ERR_LAYOUT', ['placements.tp', 'the axes x'], () =>
    layout({ shape: [8], dtype: 'f32', mesh: mesh({ x: 2 }), placements: { tp: shard(0) } }),
  ),
  refused('a rank that is listed twice', 'ERR_MESH', ['ranks[1]', 'distinct'], () =>
    mesh({ x: 2 }, { ranks: [3, 3] }),
  ),
  refused('a rank list of another length', 'ERR_MESH', ['x 2 = 2', 'got 3'], () =>
    mesh({ x: 2 }, { ranks: [0, 1, 2] }),
  ),
  refused('a shard of a scalar', 'ERR_LAYOUT', ['placements.x', 'scalar'], () =>
    layout({ shape: [], dtype: 'f32', mesh: mesh({ x: 2 }), placements: { x: shard(0) } }),
  ),
  refused('an element without a source', 'ERR_COVERAGE', ['w[4:5]', 'no source', 'rank 2'], () =>
    planWith(
      layout({
        shape: [8, 6],
        dtype: 'f32',
        mesh: mesh({ x: 2 }),
        placements: {
          x: shard(
            0,
            ranges([
              [0, 4],
              [5, 8],
            ]),
          ),
        },
      }),
      columns,
    ),
  ),
  refused('packed f4 to bf16', 'ERR_CAST', ['f4e2m1x2', 'bf16'], () =>
    planWith(rowsOf([8, 6], 'f4e2m1x2'), rowsOf([8, 6], 'bf16', 2)),
  ),
  refused('two tensors of one name', 'ERR_INVALID_ARGUMENT', ['"w"', 'distinct'], () =>
    createPlan({
      tensors: [
        { name: 'w', source: halves, destination: columns },
        { name: 'w', source: halves, destination: columns },
      ],
    }),
  ),
  refused('a topology with too few ranks', 'ERR_TOPOLOGY', ['8', '12'], () => topologyFor('single-node', 12)),
  memory(
    'a buffer that is too small',
    'ERR_OUT_OF_BOUNDS',
    ['destinations["w"]', 'rank 2', '96'],
    (world) => ({
      destinations: { w: world.ranks[2]!.allocate(95) },
    }),
  ),
  memory('a buffer of another rank', 'ERR_FOREIGN_OBJECT', ['destinations["w"]', 'rank 3'], (world) => ({
    destinations: { w: world.ranks[3]!.allocate(96) },
  })),
  memory(
    'an offset inside an element',
    'ERR_INVALID_ARGUMENT',
    ['byteOffset', 'multiple of 4', '2'],
    (world) => ({
      destinations: { w: { buffer: world.ranks[2]!.allocate(128), byteOffset: 2 } },
    }),
  ),
  {
    what: 'source and destination in the same bytes',
    outcome: 'refused',
    ranks: 2,
    error: { code: 'ERR_OVERLAP', says: ['rank 0', 'source', 'destination'] },
    attempt: async (context) => {
      const world = await context.shared(2);
      const to = layout({ ...layoutInput(), placements: { x: shard(1) } });
      return firstError(
        world.ranks.map((communicator) => {
          const memory = communicator.allocate(96);
          return reshard(communicator, {
            w: { source: { layout: layout(layoutInput()), memory }, destination: { layout: to, memory } },
          });
        }),
      );
    },
  },
  {
    what: 'a stream of another communicator',
    outcome: 'refused',
    ranks: 2,
    error: { code: 'ERR_FOREIGN_OBJECT' },
    attempt: async (context) => {
      const world = await context.shared(2);
      const plan = createPlan({ tensors: [], worldSize: 2 });
      const transfers = await Promise.all(world.ranks.map((rank) => prepareTransfer(rank, plan)));
      const stream = world.ranks[1]!.createStream();
      try {
        transfers[0]!.enqueue(stream);
      } finally {
        await stream.dispose();
        await Promise.all(transfers.map((transfer) => transfer.dispose()));
      }
    },
  },
];

function refused(
  what: string,
  code: NcclExtError['code'],
  says: readonly string[],
  attempt: () => unknown,
): RefusalRow {
  return { what, outcome: 'refused', ranks: 1, error: { code, says }, attempt };
}

/** A split of 8 rows over two ranks. */
function split(what: string, placement: Placement, says: readonly string[]): RefusalRow {
  return refused(what, 'ERR_LAYOUT', says, () => layout({ ...layoutInput(), placements: { x: placement } }));
}

function layoutInput(): Parameters<typeof layout>[0] {
  return { shape: [8, 6], dtype: 'f32', mesh: mesh({ x: 2 }), placements: { x: shard(0) } };
}

/** Rank 2 binds its half of the columns (96 bytes) wrongly; the others are right, and learn that rank 2 refused. */
function memory(
  what: string,
  code: NcclExtError['code'],
  says: readonly string[],
  bind: (world: CaseWorld) => { readonly destinations: Bindings },
): RefusalRow {
  const attempt = async (context: CheckContext): Promise<never> => {
    const world = await context.fresh({ ranks: 4 });
    const plan = planWith(halves, columns);
    const results = await Promise.allSettled(
      world.ranks.map((communicator) =>
        prepareTransfer(
          communicator,
          plan,
          communicator.rank === 2
            ? bind(world)
            : { [communicator.rank < 2 ? 'sources' : 'destinations']: { w: communicator.allocate(96) } },
        ),
      ),
    );
    const errors = results.map((result) => (result.status === 'rejected' ? result.reason : undefined));
    const others = errors.filter((_, rank) => rank !== 2);
    if (!others.every((error) => NcclExtError.is(error, 'ERR_RANK_LOST') && error.peer === 2)) {
      throw new Error(`the other ranks did not learn that rank 2 refused: ${others.join('; ')}`);
    }
    throw errors[2];
  };
  return { what, outcome: 'refused', ranks: 4, error: { code, says }, attempt };
}

async function firstError(calls: readonly Promise<unknown>[]): Promise<never> {
  const results = await Promise.allSettled(calls);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed === undefined) throw new Error('every rank went through');
  throw failed.reason;
}
