// SPDX-License-Identifier: Apache-2.0
// The least time of a dispatch or combine on a topology: the busiest port of any rank, and the pass over its memory.
//
// As in plans of transfers, a rank has one port per kind of link and direction, and all of them work at once. Latency and launches are not
// counted: no step is faster, most are slower.

import type { LinkClass, Topology } from '@nccl-ext/core';

/** What takes longest. */
export interface PassBound {
  readonly seconds: number;
  readonly rank: number;
  readonly what: 'sends' | 'receives' | 'memory';
  /** The class with most of the bytes. */
  readonly link: LinkClass;
  readonly bytes: number;
}

interface Pass {
  /** `[source * ranks + destination]`. */
  readonly rows: Float64Array;
  /** Rows that each rank holds in the layout: written by dispatch, read by combine. */
  readonly received: Float64Array;
  readonly perRow: number;
  readonly ranks: number;
  readonly topology: Topology;
  /** Rows go back to their sources. */
  readonly back: boolean;
}

/** Classes that share a port. */
const ports: readonly (readonly LinkClass[])[] = [['device'], ['nvlink'], ['node'], ['rail', 'network']];

export function passBound({ rows, received, perRow, ranks, topology, back }: Pass): PassBound {
  let worst: PassBound = { seconds: 0, rank: 0, what: 'memory', link: 'self', bytes: 0 };
  const consider = (bound: PassBound): void => {
    if (bound.seconds > worst.seconds) worst = bound;
  };
  const rateOf = (link: LinkClass): number => topology.links[link].bandwidthGBps * 1e9;
  for (let rank = 0; rank < ranks; rank++) {
    const bytes = received[rank]! * perRow;
    // The figure of a copy: each byte is read and written; a pass only does one of the two here.
    consider({ seconds: bytes / (2 * rateOf('self')), rank, what: 'memory', link: 'self', bytes });
    for (const outgoing of [true, false]) {
      const load = new Map<LinkClass, number>();
      for (let peer = 0; peer < ranks; peer++) {
        const link = topology.linkBetween(rank, peer);
        const at = outgoing === back ? peer * ranks + rank : rank * ranks + peer;
        load.set(link, (load.get(link) ?? 0) + rows[at]! * perRow);
      }
      for (const port of ports) {
        const used = port.filter((link) => (load.get(link) ?? 0) > 0);
        const seconds = used.reduce((sum, link) => sum + load.get(link)! / rateOf(link), 0);
        const total = used.reduce((sum, link) => sum + load.get(link)!, 0);
        const what = outgoing ? 'sends' : 'receives';
        const [link] = used.toSorted((a, b) => load.get(b)! - load.get(a)!);
        if (link !== undefined) consider({ seconds, rank, what, link, bytes: total });
      }
    }
  }
  return worst;
}
