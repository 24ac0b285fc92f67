// SPDX-License-Identifier: Apache-2.0
// What nccl_m2n 0.2.0 refuses, line by line in the order of its checks, and what becomes of each here.

import { type DType, layout, mesh, type Placement, shard } from '@nccl-ext/core';
import { createPlan, prepareTransfer } from '@nccl-ext/m2n';
import { columns, halves, planWith, rowsOf } from './examples.js';
import type { RefusalRow } from './refusal-row.js';

export const ncclM2nRows: readonly RefusalRow[] = [
  {
    what: 'no communicator',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_DISPOSED', says: ['communicator'] },
    attempt: async (context) => {
      const world = await context.fresh({ ranks: 1 });
      await world.ranks[0]!.dispose();
      await prepareTransfer(world.ranks[0]!, createPlan({ tensors: [] }));
    },
  },
  {
    what: 'no source or no destination',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_INVALID_ARGUMENT', says: ['source'] },
    attempt: () => createPlan({ tensors: [{ name: 'w', source: undefined as never, destination: columns }] }),
  },
  {
    what: 'a descriptor of another size or version',
    outcome: 'does not apply',
    reason: 'layouts are objects of this package, not structures that a caller compiles in',
  },
  {
    what: 'no dimension, or more than three',
    outcome: 'supported',
    provenBy: 'many-dims/8 dims, middle to first and last',
  },
  {
    what: 'no local shape',
    outcome: 'does not apply',
    reason: 'local shapes follow from the global shape; nobody passes them',
  },
  {
    what: 'no mesh',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_LAYOUT', says: ['mesh', 'DeviceMesh'] },
    attempt: () => layout({ shape: [4], dtype: 'f32', mesh: undefined as never, placements: {} }),
  },
  {
    what: 'a mesh of another size or version',
    outcome: 'does not apply',
    reason: 'meshes are objects of this package, not structures that a caller compiles in',
  },
  {
    what: 'a mesh of no axes, or more than two',
    outcome: 'supported',
    provenBy: 'placements/four axes, three of them shard',
  },
  {
    what: 'no axis sizes',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_MESH', says: ['axes'] },
    attempt: () => mesh(undefined as never),
  },
  {
    what: 'no placements',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_LAYOUT', says: ['placements'] },
    attempt: () => layout({ shape: [4], dtype: 'f32', mesh: mesh({ x: 2 }), placements: undefined as never }),
  },
  {
    what: 'a negative first rank',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_MESH', says: ['startRank', '-1'] },
    attempt: () => mesh({ x: 2 }, { startRank: -1 }),
  },
  {
    what: 'an axis of size zero',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_MESH', says: ['axes.x', '0'] },
    attempt: () => mesh({ x: 0 }),
  },
  {
    what: 'more ranks than a mesh can have',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_MESH', says: ['65536', '65537'] },
    attempt: () => mesh({ y: 65_536, x: 65_537 }),
  },
  {
    what: 'different numbers of dimensions',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_SHAPE_MISMATCH', says: ['[8, 6]', '[8]'] },
    attempt: () =>
      createPlan({ tensors: [{ name: 'w', source: rowsOf([8, 6]), destination: rowsOf([8], 'f32', 2) }] }),
  },
  { what: 'dtypes that differ: floats', outcome: 'supported', provenBy: 'casts/f32 to bf16' },
  {
    what: 'dtypes that differ: others',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_CAST', says: ['f32', 'i32'] },
    attempt: () => planWith(rowsOf([8, 6], 'f32'), rowsOf([8, 6], 'i32', 2)),
  },
  {
    what: 'an unknown dtype',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_LAYOUT', says: ['dtype', 'complex64'] },
    attempt: () => rowsOf([8], 'complex64' as DType),
  },
  {
    what: 'a placement that is neither',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_LAYOUT', says: ['placements.x', 'replicate()', 'shard(dim)'] },
    attempt: () =>
      layout({
        shape: [8],
        dtype: 'f32',
        mesh: mesh({ x: 2 }),
        placements: { x: { kind: 'partial' } as unknown as Placement },
      }),
  },
  {
    what: 'a shard of a dimension that does not exist',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_LAYOUT', says: ['placements.x.dim', '2'] },
    attempt: () => layout({ shape: [8, 6], dtype: 'f32', mesh: mesh({ x: 2 }), placements: { x: shard(2) } }),
  },
  { what: 'two axes that shard', outcome: 'supported', provenBy: 'placements/two shard axes to none' },
  {
    what: 'two axes that shard, one of size 1',
    outcome: 'supported',
    provenBy: 'placements/a second shard axis of size 1',
  },
  { what: 'no axis that shards', outcome: 'supported', provenBy: 'replication/200x200 f32 on 8' },
  {
    what: 'an unknown handle',
    outcome: 'refused',
    ranks: 2,
    error: { code: 'ERR_DISPOSED', says: ['transfer'] },
    attempt: async (context) => {
      const world = await context.shared(2);
      const plan = createPlan({ tensors: [], worldSize: 2 });
      const [transfer, other] = await Promise.all(world.ranks.map((rank) => prepareTransfer(rank, plan)));
      await Promise.all([transfer!.dispose(), other!.dispose()]);
      transfer!.enqueue(world.ranks[0]!.createStream());
    },
  },
  {
    what: 'a communicator that is not ready',
    outcome: 'does not apply',
    reason: 'a communicator exists once it is ready: localWorld and init resolve then',
  },
  {
    what: 'a mesh that ends after the last rank',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_INVALID_ARGUMENT', says: ['Rank 3', '0 to 2'] },
    attempt: () =>
      createPlan({ worldSize: 3, tensors: [{ name: 'w', source: halves, destination: columns }] }),
  },
  {
    what: 'a plan for more ranks than the communicator has',
    outcome: 'refused',
    ranks: 2,
    error: { code: 'ERR_INVALID_ARGUMENT', says: ['4 ranks', 'has 2'] },
    attempt: async (context) => {
      const world = await context.shared(2);
      const plan = planWith(halves, columns);
      const prepared = await Promise.allSettled(world.ranks.map((rank) => prepareTransfer(rank, plan)));
      throw (prepared[0] as PromiseRejectedResult).reason;
    },
  },
  { what: 'meshes that overlap', outcome: 'supported', provenBy: 'meshes/one mesh, rows to columns' },
  {
    what: 'a member without memory',
    outcome: 'refused',
    ranks: 4,
    error: { code: 'ERR_INVALID_ARGUMENT', says: ['sources["w"]', 'rank 0', 'not bound'] },
    attempt: async (context) => {
      const world = await context.shared(4);
      const plan = planWith(halves, columns);
      const prepared = await Promise.allSettled(world.ranks.map((rank) => prepareTransfer(rank, plan)));
      throw (prepared[0] as PromiseRejectedResult).reason;
    },
  },
  {
    what: 'a size in bytes that overflows',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_LAYOUT', says: ['shape', '2^53 - 1 bytes'] },
    attempt: () => rowsOf([2 ** 40, 2 ** 20]),
  },
  { what: 'a stream that records a graph', outcome: 'supported', provenBy: 'graphs/captured before any run' },
  {
    what: 'memory that cannot be had',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_OUT_OF_MEMORY', says: [String(2 ** 52)] },
    attempt: async (context) => (await context.shared(1)).ranks[0]!.allocate(2 ** 52),
  },
  {
    what: 'errors of the GPU',
    outcome: 'does not apply',
    reason: 'the embedded backend has no GPU; the tests of the native code raise them',
  },
  {
    what: 'more sources than a fixed table holds',
    outcome: 'supported',
    provenBy: 'meshes/33 sources, 2 destinations',
  },
  {
    what: 'more targets than a fixed table holds',
    outcome: 'supported',
    provenBy: 'meshes/1 source, 65 destinations',
  },
  {
    what: 'a shard larger than the staging buffer',
    outcome: 'supported',
    provenBy: 'large/4294967297 bytes to one peer',
  },
  {
    what: 'one staging slot used twice at once',
    outcome: 'supported',
    provenBy: 'streams/one transfer on two streams at once',
  },
  {
    what: 'global shapes that differ, which its single call moves anyway',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_SHAPE_MISMATCH', says: ['[8, 6]', '[8, 7]'] },
    attempt: () => planWith(rowsOf([8, 6]), rowsOf([8, 7], 'f32', 2)),
  },
  { what: 'shards that do not divide', outcome: 'supported', provenBy: 'placements/uneven 10 over 4 to 3' },
  {
    what: 'shards that do not divide where even ones were asked for',
    outcome: 'refused',
    ranks: 1,
    error: { code: 'ERR_LAYOUT', says: ['even', 'dim 0', '9 = 2 x 4 + 1'] },
    attempt: () =>
      layout({ shape: [9], dtype: 'f32', mesh: mesh({ x: 2 }), placements: { x: shard(0, 'even') } }),
  },
];
