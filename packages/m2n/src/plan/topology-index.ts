// SPDX-License-Identifier: Apache-2.0
// A topology as flat arrays over the ranks of a plan, because plans ask about millions of pairs.

import { type LinkClass, linkClasses, type Topology } from '@nccl-ext/core';

/** Positions in {@link linkClasses}. */
export const linkIndex: Readonly<Record<LinkClass, number>> = Object.fromEntries(
  linkClasses.map((name, i) => [name, i]),
) as Record<LinkClass, number>;

export class TopologyIndex {
  readonly domain: Int32Array;
  readonly rail: Int32Array;
  /** All ranks are in one domain. */
  readonly single: boolean;
  /** Some ranks share a GPU, so links inside a domain differ. */
  readonly sharedDevices: boolean;
  /** Some node has ranks of several domains. */
  readonly splitNodes: boolean;
  readonly #node: Int32Array;
  readonly #device: Int32Array;

  constructor(topology: Topology, worldSize: number) {
    const table = (of: (rank: number) => number): Int32Array => {
      const values = new Int32Array(worldSize);
      for (let rank = 0; rank < worldSize; rank++) values[rank] = of(rank);
      return values;
    };
    this.domain = table((rank) => topology.domainOf(rank));
    this.rail = table((rank) => topology.railOf(rank));
    this.#node = table((rank) => topology.nodeOf(rank));
    const devices = new Map<string, number>();
    this.#device = table((rank) => {
      const key = `${topology.nodeOf(rank)}/${topology.deviceOf(rank)}`;
      const known = devices.get(key) ?? devices.size;
      devices.set(key, known);
      return known;
    });
    this.single = this.domain.every((domain) => domain === this.domain[0]);
    this.sharedDevices = devices.size < worldSize;
    const domainOfNode = new Map<number, number>();
    this.splitNodes = this.#node.some((node, rank) => {
      const known = domainOfNode.get(node);
      if (known === undefined) domainOfNode.set(node, this.domain[rank]!);
      return known !== undefined && known !== this.domain[rank];
    });
  }

  /** Position in {@link linkClasses} of the link between two ranks; agrees with `Topology.linkBetween`. */
  link(a: number, b: number): number {
    if (a === b) return linkIndex.self;
    if (this.#device[a] === this.#device[b]) return linkIndex.device;
    if (this.domain[a] === this.domain[b]) return linkIndex.nvlink;
    if (this.#node[a] === this.#node[b]) return linkIndex.node;
    return this.rail[a] === this.rail[b] ? linkIndex.rail : linkIndex.network;
  }
}
