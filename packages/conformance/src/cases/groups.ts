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
  soak: { about: 'a thousand refits: no drift in memory or results', always: false },
  large: { about: 'sizes across 2^31 and 2^32 bytes', always: false },
};
