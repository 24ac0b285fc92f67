// SPDX-License-Identifier: Apache-2.0
// Sorts the holders of an atom by NVLink domain.

import type { Atom } from './side.js';
import type { TopologyIndex } from './topology-index.js';

/** Ranks of an atom by domain: those of `domains[i]` are ranks[starts[i]..starts[i + 1]), ascending. */
export interface DomainGroups {
  /** Ascending. */
  readonly domains: readonly number[];
  readonly starts: readonly number[];
  readonly ranks: Int32Array;
  /** Most ranks in one domain. */
  readonly largest: number;
}

/** Groups of the atoms of one plan, each computed once. */
export class DomainGrouping {
  readonly #topology: TopologyIndex;
  readonly #known = new Map<Atom, DomainGroups>();

  constructor(topology: TopologyIndex) {
    this.#topology = topology;
  }

  of(atom: Atom): DomainGroups {
    let groups = this.#known.get(atom);
    if (!groups) {
      groups = this.#group(atom.ranks);
      this.#known.set(atom, groups);
    }
    return groups;
  }

  #group(ranks: Int32Array): DomainGroups {
    const { domain, single } = this.#topology;
    const { length } = ranks;
    if (single || length === 1) {
      return { domains: [domain[ranks[0]!]!], starts: [0, length], ranks, largest: length };
    }
    return this.#sort(ranks);
  }

  #sort(ranks: Int32Array): DomainGroups {
    const { domain } = this.#topology;
    const sorted = Int32Array.from([...ranks].sort((a, b) => domain[a]! - domain[b]! || a - b));
    const domains: number[] = [];
    const starts: number[] = [];
    sorted.forEach((rank, i) => {
      if (domains.at(-1) === domain[rank]!) return;
      domains.push(domain[rank]!);
      starts.push(i);
    });
    starts.push(sorted.length);
    const largest = domains.reduce((most, _, i) => Math.max(most, starts[i + 1]! - starts[i]!), 0);
    return { domains, starts, ranks: sorted, largest };
  }
}

/** The ranks of a domain, none when the domain has none. */
export function ranksIn(groups: DomainGroups, domain: number): Int32Array {
  const at = positionOf(groups.domains, domain);
  if (at === 0 && groups.domains.length === 1) return groups.ranks;
  return at < 0 ? nobody : groups.ranks.subarray(groups.starts[at]!, groups.starts[at + 1]!);
}

/** Position of a domain in `groups.domains`, or -1. */
export function positionOf(domains: readonly number[], domain: number): number {
  let low = 0;
  let high = domains.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (domains[middle]! < domain) low = middle + 1;
    else high = middle;
  }
  return low < domains.length && domains[low] === domain ? low : -1;
}

const nobody = new Int32Array(0);
