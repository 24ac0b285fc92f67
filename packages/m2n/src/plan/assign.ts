// SPDX-License-Identifier: Apache-2.0
// Decides who serves what and counts it. Every rank computes the same, without talking to the others.

import { ForwardCounter } from './count-forwards.js';
import { demandLine } from './demand-line.js';
import { positionOf } from './domain-groups.js';
import { LinkCounter } from './link-counter.js';
import type { PlanClass, PlanContext } from './plan-class.js';
import type { PlanTotals } from './plan-totals.js';
import { shareOut } from './share-out.js';
import { type Atom, includes, membersOf, type Side } from './side.js';
import { suppliersOf } from './suppliers.js';
import { Tally } from './tally.js';

/** A cut may miss the balanced place by this part of what a source rank sends on average. */
const tolerance = 0.0025;

/** What `domain` wants of a source atom, over all tensors of the class; -1: all domains without a source. */
interface Demand {
  readonly cls: PlanClass;
  readonly atom: Atom;
  readonly domain: number;
  readonly bytes: number;
}

/** A demand that several ranks can serve. */
interface SharedDemand extends Demand {
  readonly suppliers: Int32Array;
}

/** Sets the cuts of the context. `tensors` is the length of the plan's tensor list. */
export function assign(
  context: PlanContext,
  classes: readonly PlanClass[],
  worldSize: number,
  tensors: number,
): PlanTotals {
  const tally = new Tally(classes, worldSize);
  const assigner = new Assigner(context, tally);
  for (const cls of classes) for (const atom of cls.source.atoms) assigner.demandOn(cls, atom);
  assigner.divide();
  return tally.totals(tensors);
}

class Assigner {
  readonly #context: PlanContext;
  readonly #tally: Tally;
  readonly #links: LinkCounter;
  readonly #forwards: ForwardCounter;
  readonly #shared: SharedDemand[] = [];
  /** Reused, because there are thousands of source atoms. */
  #scratch = new Float64Array(16);

  constructor(context: PlanContext, tally: Tally) {
    this.#context = context;
    this.#tally = tally;
    this.#links = new LinkCounter(context, tally.links);
    this.#forwards = new ForwardCounter(context, tally);
  }

  /** Counts what is wanted of an atom, and hands it to its supplier where there is only one. */
  demandOn(cls: PlanClass, a: Atom): void {
    const { domains, topology } = this.#context;
    const { destination, entries } = cls;
    const unit = entries.length * destination.elementBytes;
    const sources = domains.of(a);
    const within = this.#zeros(sources.domains.length);
    let outside = 0;
    let forwarded = 0;
    const both = ranksWithin(a.ranks, destination);
    const cells = destination.cellsOf(a.region);
    for (let i = 0; i < cells.atoms.length; i++) {
      const b = cells.atoms[i]!;
      const bytes = cells.elements[i]! * unit;
      let common = 0;
      for (const rank of both) {
        if (!includes(b.ranks, rank)) continue;
        common++;
        this.#tally.addLocal(bytes * membersOf(b, rank).length);
        within[positionOf(sources.domains, topology.domain[rank]!)]! -= bytes;
      }
      this.#tally.lowerBound += bytes * (b.ranks.length - common);
      const wanting = domains.of(b);
      let near = 0;
      let nearDomains = 0;
      for (let k = 0; k < sources.domains.length; k++) {
        const at = positionOf(wanting.domains, sources.domains[k]!);
        if (at < 0) continue;
        const ranks = wanting.starts[at + 1]! - wanting.starts[at]!;
        within[k]! += bytes * ranks;
        near += ranks;
        nearDomains++;
      }
      const entered = wanting.domains.length - nearDomains;
      outside += bytes * entered;
      forwarded += bytes * (b.ranks.length - near - entered);
      if (b.members.length > 1) this.#forwards.addRepeats(cls, a, b, bytes);
    }
    for (let k = 0; k < sources.domains.length; k++) {
      if (within[k]! > 0) this.#hand({ cls, atom: a, domain: sources.domains[k]!, bytes: within[k]! });
    }
    this.#tally.entering += outside;
    if (outside > 0) this.#hand({ cls, atom: a, domain: -1, bytes: outside });
    if (forwarded > 0) this.#forwards.addForwards(cls, a, forwarded);
  }

  #zeros(length: number): Float64Array {
    if (length > this.#scratch.length) this.#scratch = new Float64Array(2 * length);
    return this.#scratch.fill(0, 0, length);
  }

  #hand(demand: Demand): void {
    const { cls, atom, domain, bytes } = demand;
    const suppliers = suppliersOf(this.#context, atom, domain);
    if (suppliers.length > 1) {
      this.#shared.push({ ...demand, suppliers });
      return;
    }
    this.#tally.sent[suppliers[0]!]! += bytes;
    this.#links.addSingle(cls, atom, domain, suppliers[0]!, bytes);
  }

  /** Fewest suppliers first, as they have the least choice; then the largest, so that small demands even out the rest. */
  divide(): void {
    const { sent } = this.#tally;
    const waiting = this.#shared.reduce((sum, { bytes }) => sum + bytes, 0);
    const mean = (this.#tally.sentBySources + waiting) / Math.max(1, this.#tally.sourceRanks);
    const order = this.#shared.sort((x, y) => x.suppliers.length - y.suppliers.length || y.bytes - x.bytes);
    for (const { cls, atom, domain, suppliers } of order) {
      const wireBytes = cls.destination.elementBytes;
      const line = demandLine(this.#context, cls, atom, domain);
      const loads = Array.from(suppliers, (rank) => sent[rank]! / wireBytes);
      const cuts = shareOut(this.#context, cls, atom, line, loads, (tolerance * mean) / wireBytes);
      this.#context.setCuts(cls, atom, domain, cuts);
      suppliers.forEach((rank, k) => {
        sent[rank]! += (cuts[k + 1]! - cuts[k]!) * wireBytes;
      });
      this.#links.addShared(cls, line, domain, suppliers, cuts);
    }
  }
}

const noRanks: readonly number[] = [];

/** The ranks that also hold something of a side. */
function ranksWithin(ranks: Int32Array, side: Side): readonly number[] {
  let found: number[] | undefined;
  for (let i = 0; i < ranks.length; i++) {
    if (!side.has(ranks[i]!)) continue;
    found ??= [];
    found.push(ranks[i]!);
  }
  return found ?? noRanks;
}
