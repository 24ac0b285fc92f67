// SPDX-License-Identifier: Apache-2.0
// Counts what destination ranks do in stage 1: forward shares inside their domain, and copy to further places of their own.

import { positionOf } from './domain-groups.js';
import { eachOutsideShare } from './domain-shares.js';
import type { PlanClass, PlanContext } from './plan-class.js';
import { type Atom, includes, membersOf, type Side } from './side.js';
import type { Tally } from './tally.js';
import { linkIndex } from './topology-index.js';

export class ForwardCounter {
  readonly #context: PlanContext;
  readonly #tally: Tally;
  readonly #withSource = new Map<Side, boolean>();

  constructor(context: PlanContext, tally: Tally) {
    this.#context = context;
    this.#tally = tally;
  }

  /** Members of domains without a source of `a` send their shares to each other: `bytes` in all. */
  addForwards(cls: PlanClass, a: Atom, bytes: number): void {
    const { topology } = this.#context;
    const { links, sent } = this.#tally;
    this.#tally.forwarded += bytes;
    if (!topology.sharedDevices) {
      links[linkIndex.nvlink]! += bytes;
      if (!this.#hasSource(cls.destination)) return;
    }
    const wireBytes = cls.destination.elementBytes;
    eachOutsideShare(this.#context, cls, a, (_b, _cell, { members, from, to }, start, end) => {
      for (let i = start; i < end; i++) {
        const sender = members[i]!;
        const share = (to[i]! - from[i]!) * wireBytes;
        sent[sender]! += share * (end - start - 1);
        if (!topology.sharedDevices) continue;
        for (let k = start; k < end; k++) if (k !== i) links[topology.link(sender, members[k]!)]! += share;
      }
    });
  }

  /**
   * Ranks that keep `b` in several places and are no source: they copy what they received themselves, and what was
   * forwarded to them is forwarded to each place. `bytes` is the cell, over all tensors of the class.
   */
  addRepeats(cls: PlanClass, a: Atom, b: Atom, bytes: number): void {
    const { domains, topology } = this.#context;
    const sources = domains.of(a).domains;
    for (const rank of b.ranks) {
      const near = positionOf(sources, topology.domain[rank]!) >= 0;
      if (near && !includes(a.ranks, rank)) this.#tally.addLocal(bytes * (membersOf(b, rank).length - 1));
    }
    if (topology.single) return;
    const wireBytes = cls.destination.elementBytes;
    eachOutsideShare(this.#context, cls, a, (atom, _cell, { members, from, to }, start, end) => {
      if (atom !== b) return;
      for (let k = start; k < end; k++) {
        const receiver = members[k]!;
        const extra = membersOf(b, receiver).length - 1;
        for (let i = start; i < end; i++) {
          const share = (to[i]! - from[i]!) * wireBytes * extra;
          if (i === k) this.#tally.addLocal(share);
          else this.#addExtra(members[i]!, receiver, share);
        }
      }
    });
  }

  #addExtra(from: number, to: number, bytes: number): void {
    this.#tally.forwarded += bytes;
    this.#tally.sent[from]! += bytes;
    this.#tally.links[this.#context.topology.link(from, to)]! += bytes;
  }

  /** Whether a rank of the side is a source of any tensor: only what such ranks send is balanced and reported. */
  #hasSource(side: Side): boolean {
    let has = this.#withSource.get(side);
    if (has === undefined) {
      has = side.atoms.some(({ ranks }) => ranks.some((rank) => this.#tally.isSource(rank)));
      this.#withSource.set(side, has);
    }
    return has;
  }
}
