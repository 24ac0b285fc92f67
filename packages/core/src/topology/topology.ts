// SPDX-License-Identifier: Apache-2.0
// Which ranks are near each other: planners ask it for the class of link between any two of thousands of ranks.

import * as z from 'zod';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireArray } from '../errors/require-kind.js';
import { describe, requireInteger } from '../mesh/require-integer.js';
import { hopperLinks, type Link, type LinkClass, type Links, linkClasses } from './link.js';
import { type RankPlace, type TopologyDescription, topologySchema } from './topology-schema.js';

/**
 * The topology of these ranks.
 *
 * @throws ERR_TOPOLOGY when the description is malformed or puts one GPU in two domains or rails.
 * @example
 * ```ts
 * // Two nodes with one GPU each, on the same rail.
 * const pair = topology({
 *   ranks: [
 *     { node: 0, domain: 0, rail: 0, device: 0 },
 *     { node: 1, domain: 1, rail: 0, device: 0 },
 *   ],
 * });
 * pair.linkBetween(0, 1); // 'rail'
 * ```
 */
export function topology(description: TopologyDescription): Topology {
  const parsed = topologySchema.safeParse(description);
  if (!parsed.success) {
    throw new NcclExtError('ERR_TOPOLOGY', `The topology is malformed:\n${z.prettifyError(parsed.error)}`, {
      help: 'Describe every rank as { node, domain, rail, device }, all integers from 0.',
      field: parsed.error.issues[0]?.path.join('.') ?? '',
    });
  }
  const links = { ...hopperLinks };
  for (const name of linkClasses) links[name] = parsed.data.links?.[name] ?? links[name];
  return new Topology(parsed.data.ranks, links);
}

/** Places of ranks and figures of links; made by {@link topology}, {@link presetTopology} or {@link singleDomain}. */
export class Topology {
  /** Number of ranks. */
  readonly size: number;
  /** Bandwidth and latency of each class of link. */
  readonly links: Links;
  readonly #node: Int32Array;
  readonly #domain: Int32Array;
  readonly #rail: Int32Array;
  readonly #device: Int32Array;

  /** @internal Takes places whose fields are known to be integers from 0. */
  constructor(ranks: readonly RankPlace[], links: Links) {
    this.size = ranks.length;
    this.links = links;
    this.#node = Int32Array.from(ranks, (place) => place.node);
    this.#domain = Int32Array.from(ranks, (place) => place.domain);
    this.#rail = Int32Array.from(ranks, (place) => place.rail);
    this.#device = Int32Array.from(ranks, (place) => place.device);
    rejectSplitDevices(ranks);
  }

  /** The class of link over which rank `a` reaches rank `b`; symmetric. */
  linkBetween(a: number, b: number): LinkClass {
    const nodeA = this.nodeOf(a);
    const nodeB = this.nodeOf(b);
    if (a === b) return 'self';
    if (nodeA === nodeB && this.#device[a] === this.#device[b]) return 'device';
    if (this.#domain[a] === this.#domain[b]) return 'nvlink';
    if (nodeA === nodeB) return 'node';
    return this.#rail[a] === this.#rail[b] ? 'rail' : 'network';
  }

  /** Bandwidth and latency between two ranks. */
  linkOf(a: number, b: number): Link {
    return this.links[this.linkBetween(a, b)];
  }

  nodeOf(rank: number): number {
    return this.#node[rank] ?? this.#refuse(rank);
  }

  /** The NVLink domain of a rank. */
  domainOf(rank: number): number {
    return this.#domain[rank] ?? this.#refuse(rank);
  }

  railOf(rank: number): number {
    return this.#rail[rank] ?? this.#refuse(rank);
  }

  /** The GPU of a rank, counted within its node. */
  deviceOf(rank: number): number {
    return this.#device[rank] ?? this.#refuse(rank);
  }

  /** The topology of the first `ranks` ranks. */
  first(ranks: number): Topology {
    requireInteger('ERR_INVALID_ARGUMENT', 'ranks', ranks, 1, this.size);
    return ranks === this.size ? this : new Topology(this.toJSON().ranks.slice(0, ranks), this.links);
  }

  /** The topology of these ranks, which become 0, 1, ... in the order given. */
  subset(ranks: readonly number[]): Topology {
    requireArray('ranks', ranks);
    requireInteger('ERR_INVALID_ARGUMENT', 'ranks.length', ranks.length, 1);
    const all = this.toJSON().ranks;
    const places = ranks.map((rank, index) => {
      const known = requireInteger('ERR_INVALID_ARGUMENT', `ranks[${index}]`, rank, 0, this.size - 1);
      return all[known]!;
    });
    return new Topology(places, this.links);
  }

  /** A description from which {@link topology} makes an equal one; equal topologies give equal text. */
  toJSON(): { ranks: RankPlace[]; links: Links } {
    const ranks = Array.from(this.#node, (node, rank) => ({
      node,
      domain: this.domainOf(rank),
      rail: this.railOf(rank),
      device: this.deviceOf(rank),
    }));
    return { ranks, links: Object.fromEntries(linkClasses.map((name) => [name, this.links[name]])) as Links };
  }

  #refuse(rank: number): never {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `rank is ${describe(rank)}, but this topology has the ranks 0 to ${this.size - 1}.`,
      { field: 'rank', expected: `0..${this.size - 1}`, seen: rank },
    );
  }
}

// A GPU has one set of NVLink ports and one nearest NIC.
function rejectSplitDevices(ranks: readonly RankPlace[]): void {
  const owners = new Map<string, number>();
  for (const [rank, place] of ranks.entries()) {
    const key = `${place.node}/${place.device}`;
    const owner = owners.get(key);
    if (owner === undefined) {
      owners.set(key, rank);
      continue;
    }
    for (const field of ['domain', 'rail'] as const) {
      const expected = ranks[owner]![field];
      if (place[field] === expected) continue;
      throw new NcclExtError(
        'ERR_TOPOLOGY',
        `Ranks ${owner} and ${rank} share device ${place.device} of node ${place.node}, ` +
          `but have the ${field}s ${expected} and ${place[field]}.`,
        {
          help: `Give ranks of one GPU the same ${field}, or different devices.`,
          rank,
          field: `ranks.${rank}.${field}`,
          expected,
          seen: place[field],
        },
      );
    }
  }
}
