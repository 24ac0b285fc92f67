// SPDX-License-Identifier: Apache-2.0
// Predicts how long a plan takes on its topology, and how long any plan would take at least.
//
// Model: a rank has one port per kind of link and direction, all ports work at once, and a stage is over when the busiest
// port is; each stage pays the latency of its slowest link once, because messages overlap. Stage 1 starts after stage 0.
// NICs are one port for `rail` and `network`. Contention inside switches is not modelled.

import { type LinkClass, type Links, linkClasses, type Topology } from '@nccl-ext/core';
import { type Traffic, trafficIndex } from './traffic.js';

/** The busiest port of a plan. */
export interface Bottleneck {
  readonly rank: number;
  readonly direction: 'sends' | 'receives';
  /** The class with most of the bytes. */
  readonly link: LinkClass;
  readonly bytes: number;
  readonly seconds: number;
}

export interface Prediction {
  readonly seconds: number;
  /** No plan can be faster: T* from what must enter a rank or a domain, or leave a rank that is the only source. */
  readonly lowerBoundSeconds: number;
  /** `seconds / lowerBoundSeconds`; 1 when nothing moves. */
  readonly gap: number;
  /** Undefined when nothing moves. */
  readonly bottleneck: Bottleneck | undefined;
}

/** Classes that share a port. */
const ports: readonly (readonly LinkClass[])[] = [
  ['self'],
  ['device'],
  ['nvlink'],
  ['node'],
  ['rail', 'network'],
];

export function predict(traffic: Traffic, topology: Topology, worldSize: number): Prediction {
  let seconds = 0;
  let bottleneck: Bottleneck | undefined;
  for (const stage of [0, 1]) {
    let busiest = 0;
    let latency = 0;
    for (const direction of ['sends', 'receives'] as const) {
      const bytes = direction === 'sends' ? traffic.sent : traffic.received;
      for (let rank = 0; rank < worldSize; rank++) {
        for (const port of ports) {
          const load = portLoad(bytes, stage, rank, port, topology.links, worldSize);
          if (load.bytes === 0) continue;
          busiest = Math.max(busiest, load.seconds);
          latency = Math.max(latency, load.latency);
          if (!bottleneck || load.seconds > bottleneck.seconds) {
            bottleneck = { rank, direction, link: load.link, bytes: load.bytes, seconds: load.seconds };
          }
        }
      }
    }
    seconds += busiest + latency;
  }
  const lowerBoundSeconds = leastSeconds(traffic, topology, worldSize);
  return {
    seconds,
    lowerBoundSeconds,
    gap: lowerBoundSeconds > 0 ? seconds / lowerBoundSeconds : 1,
    bottleneck,
  };
}

function portLoad(
  table: Float64Array,
  stage: number,
  rank: number,
  port: readonly LinkClass[],
  links: Links,
  worldSize: number,
): { bytes: number; seconds: number; latency: number; link: LinkClass } {
  const load = { bytes: 0, seconds: 0, latency: 0, link: port[0]! };
  let most = 0;
  for (const link of port) {
    const bytes = table[trafficIndex(stage, rank, linkClasses.indexOf(link), worldSize)]!;
    if (bytes === 0) continue;
    load.bytes += bytes;
    load.seconds += bytes / (links[link].bandwidthGBps * 1e9);
    load.latency = Math.max(load.latency, links[link].latencyUs * 1e-6);
    if (bytes > most) {
      most = bytes;
      load.link = link;
    }
  }
  return load;
}

/** The largest of: bytes into a rank, bytes into a domain, bytes that only one rank has; each over all ports that could carry them. */
function leastSeconds(traffic: Traffic, topology: Topology, worldSize: number): number {
  const ways = waysOf(topology, worldSize);
  const capacity = (rank: number): number => ways.inside(rank) + ways.outside(rank);
  const intoDomain = new Map<number, { bytes: number; capacity: number }>();
  let least = 0;
  for (let rank = 0; rank < worldSize; rank++) {
    let [bytes, crossing] = [0, 0];
    for (const stage of [0, 1]) {
      linkClasses.forEach((name, link) => {
        const received = traffic.received[trafficIndex(stage, rank, link, worldSize)]!;
        if (name !== 'self') bytes += received;
        if (name === 'node' || name === 'rail' || name === 'network') crossing += received;
      });
    }
    if (bytes > 0) least = Math.max(least, bytes / capacity(rank));
    if (traffic.onlySource[rank]! > 0) least = Math.max(least, traffic.onlySource[rank]! / capacity(rank));
    const domain = topology.domainOf(rank);
    const sum = intoDomain.get(domain) ?? { bytes: 0, capacity: 0 };
    intoDomain.set(domain, { bytes: sum.bytes + crossing, capacity: sum.capacity + ways.outside(rank) });
  }
  for (const { bytes, capacity: ways } of intoDomain.values())
    if (bytes > 0) least = Math.max(least, bytes / ways);
  return least;
}

/** Bytes per second that a rank could exchange within its domain and beyond, over ports that lead to anybody. */
function waysOf(
  topology: Topology,
  worldSize: number,
): { inside: (rank: number) => number; outside: (rank: number) => number } {
  const perDomain = new Map<number, number>();
  const perNode = new Map<number, Set<number>>();
  const perDevice = new Map<string, number>();
  const deviceOf = (rank: number): string => `${topology.nodeOf(rank)}/${topology.deviceOf(rank)}`;
  for (let rank = 0; rank < worldSize; rank++) {
    const domain = topology.domainOf(rank);
    perDomain.set(domain, (perDomain.get(domain) ?? 0) + 1);
    const domains = perNode.get(topology.nodeOf(rank)) ?? new Set();
    perNode.set(topology.nodeOf(rank), domains.add(domain));
    perDevice.set(deviceOf(rank), (perDevice.get(deviceOf(rank)) ?? 0) + 1);
  }
  const rate = (link: LinkClass): number => topology.links[link].bandwidthGBps * 1e9;
  return {
    inside: (rank) => {
      const sharing = perDevice.get(deviceOf(rank))!;
      const device = sharing > 1 ? rate('device') : 0;
      return device + (perDomain.get(topology.domainOf(rank))! > sharing ? rate('nvlink') : 0);
    },
    outside: (rank) => {
      const node = perNode.get(topology.nodeOf(rank))!.size > 1 ? rate('node') : 0;
      return node + (perNode.size > 1 ? Math.max(rate('rail'), rate('network')) : 0);
    },
  };
}
