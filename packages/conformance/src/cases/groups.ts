// SPDX-License-Identifier: Apache-2.0
// The groups of cases that people select by name.

/** A named part of the table. */
export interface GroupInfo {
  readonly about: string;
  /** Runs unless a group is asked for; the others take long or much memory. */
  readonly always: boolean;
}

/** The name of a group. */
export type GroupName =
  | 'replication'
  | 'sharding'
  | 'mesh-2d'
  | 'rank-ratio'
  | 'tensor-size'
  | 'three-dims'
  | 'one-dim'
  | 'dtypes'
  | 'casts'
  | 'many-dims'
  | 'placements'
  | 'storages'
  | 'meshes'
  | 'boundaries'
  | 'topologies'
  | 'groups'
  | 'streams'
  | 'graphs'
  | 'refusals'
  | 'faults'
  | 'publish'
  | 'lifetime'
  | 'ep-layouts'
  | 'ep-shapes'
  | 'ep-routing'
  | 'ep-experts'
  | 'ep-budgets'
  | 'ep-quantization'
  | 'ep-combine'
  | 'ep-backward'
  | 'ep-order'
  | 'ep-graphs'
  | 'ep-refusals'
  | 'ep-faults'
  | 'ep-membership'
  | 'ep-lifetime'
  | 'soak'
  | 'large';

/** All groups, in the order in which they run. */
export const groups: Readonly<Record<GroupName, GroupInfo>> = {
  replication: { about: 'full copies to full copies', always: true },
  sharding: {
    about: 'one axis that shards a dimension to one that shards the same or another',
    always: true,
  },
  'mesh-2d': { about: 'meshes of shards times replicas', always: true },
  'rank-ratio': { about: 'three times as many ranks on one side as on the other', always: true },
  'tensor-size': { about: 'extents that are no power of two, wide and tall', always: true },
  'three-dims': { about: 'every pair of sharded dimensions of three', always: true },
  'one-dim': { about: 'vectors', always: true },
  dtypes: { about: 'every element type', always: true },
  casts: { about: 'every pair of float types, rounded once', always: true },
  'many-dims': { about: 'scalars, and four to eight dimensions', always: true },
  placements: {
    about: 'nested, uneven, sized, ranged, strided, interleaved and block-cyclic shards',
    always: true,
  },
  storages: { about: 'fused, padded and tied storage', always: true },
  meshes: { about: 'rank lists in any order, overlap, one mesh for both sides, spectators', always: true },
  boundaries: { about: 'empty and one-element tensors, primes, short rows, unaligned memory', always: true },
  topologies: { about: 'several NVLink domains: one copy enters each', always: true },
  groups: { about: 'many tensors in one transfer', always: true },
  streams: { about: 'order on and between streams', always: true },
  graphs: { about: 'captured and replayed transfers', always: true },
  refusals: { about: 'wrong input is refused by name', always: true },
  faults: { about: 'missing, late, lying and lost ranks', always: true },
  publish: { about: 'versions: all ranks or none', always: true },
  lifetime: { about: 'disposal, reuse, work in flight', always: true },
  'ep-layouts': {
    about: 'expert parallelism: every layout, with and without optional outputs',
    always: true,
  },
  'ep-shapes': { about: 'expert parallelism: ranks, hidden sizes, top-k, dtypes', always: true },
  'ep-routing': { about: 'expert parallelism: ragged, empty, hot and holed routings', always: true },
  'ep-experts': { about: 'expert parallelism: uneven and redundant experts', always: true },
  'ep-budgets': { about: 'expert parallelism: eager sizes, fixed budgets, errors and drops', always: true },
  'ep-quantization': { about: 'expert parallelism: forwarded and quantised rows', always: true },
  'ep-combine': {
    about: 'expert parallelism: order and roundings of sums, experts of a layer',
    always: true,
  },
  'ep-backward': { about: 'expert parallelism: gradients of dispatch and combine', always: true },
  'ep-order': { about: 'expert parallelism: several handles, streams and sends in flight', always: true },
  'ep-graphs': { about: 'expert parallelism: captured and replayed steps', always: true },
  'ep-refusals': { about: 'expert parallelism: wrong ids and calls are refused by name', always: true },
  'ep-faults': { about: 'expert parallelism: missing, late and differing ranks', always: true },
  'ep-membership': { about: 'expert parallelism: ranks that leave and come back', always: true },
  'ep-lifetime': { about: 'expert parallelism: memory, disposal, reuse', always: true },
  soak: { about: 'a thousand refits: no drift in memory or results', always: false },
  large: { about: 'sizes across 2^31 and 2^32 bytes', always: false },
};
