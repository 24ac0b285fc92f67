// SPDX-License-Identifier: Apache-2.0
// Several NVLink domains: what a domain wants from outside enters it once and is forwarded inside.

import { blockCyclic, replicate, shard, type TopologyDescription } from '@nccl-ext/core';
import type { M2nCase, SideSpec, TensorSpec } from './case.js';
import { grid, line, moveCase } from './side.js';

/** As few ranks as forward. */
const smallCases: readonly M2nCase[] = [
  across(2, 'two trainers to two copies', 4, [tensor(line(2, shard(0)), line(2, replicate(), 2))]),
  {
    ...across(2, 'two trainers to two copies, cast, captured and hashed', 4, [
      { ...tensor(line(2, shard(1)), line(2, replicate(), 2)), dtype: 'f32', castTo: 'bf16' },
    ]),
    repeat: 5,
    capture: 'cold',
    verify: true,
  },
];

const manyCases: readonly M2nCase[] = [2, 4].flatMap((domainSize) => [
  across(domainSize, 'one trainer domain to full copies', 16, [
    tensor(line(4, shard(0)), line(12, replicate(), 4)),
  ]),
  across(domainSize, 'rows to columns with replicas', 16, [
    tensor(grid(2, 4, [replicate(), shard(0)]), grid(2, 4, [replicate(), shard(1)], 8)),
  ]),
  across(domainSize, 'replicas inside and across domains', 16, [
    tensor(line(8, shard(0)), grid(4, 2, [shard(1), replicate()], 8)),
    tensor(line(8, shard(1)), grid(2, 4, [replicate(), shard(0, blockCyclic(3))], 8)),
  ]),
  across(domainSize, 'both sides share a domain', 12, [tensor(line(6, shard(0)), line(8, replicate(), 4))]),
  across(domainSize, 'one mesh over all domains', 8, [tensor(line(8, shard(0)), line(8, replicate()))]),
  across(domainSize, 'one source', 13, [tensor(line(1, replicate()), line(12, replicate(), 1))]),
  across(domainSize, 'casts while forwarding', 12, [
    { ...tensor(line(4, shard(0)), grid(4, 2, [shard(1), replicate()], 4)), dtype: 'f32', castTo: 'bf16' },
  ]),
  {
    ...across(domainSize, 'ten refits, hashed', 12, [
      tensor(line(4, shard(0)), grid(2, 4, [shard(1), replicate()], 4)),
    ]),
    repeat: 10,
    verify: true,
  },
  {
    ...across(domainSize, 'captured', 12, [
      tensor(line(4, shard(0)), grid(2, 4, [shard(1), replicate()], 4)),
    ]),
    repeat: 10,
    capture: 'cold',
  },
]);

export const topologyCases: readonly M2nCase[] = [...smallCases, ...manyCases];

function across(domainSize: number, what: string, ranks: number, tensors: readonly TensorSpec[]): M2nCase {
  return moveCase('topologies', `domains of ${domainSize}: ${what}`, ranks, tensors, {
    topology: domains(ranks, domainSize),
    reports: ['NVIDIA-NeMo/RL#449'],
  });
}

function tensor(source: SideSpec, destination: SideSpec): TensorSpec {
  return { shape: [52, 38], dtype: 'bf16', source, destination };
}

/** Nodes that are one domain each; GPU i of every node on rail i. */
function domains(ranks: number, size: number): TopologyDescription {
  return {
    ranks: Array.from({ length: ranks }, (_, rank) => {
      const node = Math.floor(rank / size);
      return { node, domain: node, rail: rank % size, device: rank % size };
    }),
  };
}
