// SPDX-License-Identifier: Apache-2.0
// Adds demands to the bytes per class of link, without visiting every pair of ranks where the class is known.

import { type DemandLine, demandLine, eachPiece, lengthOf } from './demand-line.js';
import { positionOf } from './domain-groups.js';
import type { DomainShares } from './domain-shares.js';
import type { PlanClass, PlanContext } from './plan-class.js';
import type { Atom } from './side.js';
import { linkIndex } from './topology-index.js';

export class LinkCounter {
  readonly #context: PlanContext;
  readonly #links: Float64Array;
  readonly #rails = new Map<DomainShares, ReadonlyMap<number, number>>();

  /** @param links bytes by position in `linkClasses`, added to in place */
  constructor(context: PlanContext, links: Float64Array) {
    this.#context = context;
    this.#links = links;
  }

  /** A demand that one rank serves. */
  addSingle(cls: PlanClass, a: Atom, domain: number, supplier: number, bytes: number): void {
    if (this.#addInside(domain, bytes) || (domain < 0 && this.#addByRail(cls, a, supplier))) return;
    this.#addPieces(cls, demandLine(this.#context, cls, a, domain), [supplier], undefined);
  }

  /** A demand that is cut among suppliers. */
  addShared(
    cls: PlanClass,
    line: DemandLine,
    domain: number,
    suppliers: Int32Array,
    cuts: Float64Array,
  ): void {
    if (this.#addInside(domain, lengthOf(line) * cls.destination.elementBytes)) return;
    this.#addPieces(cls, line, suppliers, cuts);
  }

  /** Inside a domain where no ranks share a GPU every link is NVLink. */
  #addInside(domain: number, bytes: number): boolean {
    if (domain < 0 || this.#context.topology.sharedDevices) return false;
    this.#links[linkIndex.nvlink]! += bytes;
    return true;
  }

  #addPieces(
    cls: PlanClass,
    line: DemandLine,
    suppliers: ArrayLike<number>,
    cuts: Float64Array | undefined,
  ): void {
    const { topology } = this.#context;
    const wireBytes = cls.destination.elementBytes;
    for (let k = 0; k < suppliers.length; k++) {
      const supplier = suppliers[k]!;
      const from = cuts ? cuts[k]! : 0;
      const to = cuts ? cuts[k + 1]! : lengthOf(line);
      eachPiece(line, from, to, (_block, receiver, low, high) => {
        this.#links[topology.link(supplier, receiver)]! += (high - low) * wireBytes;
      });
    }
  }

  /**
   * From one supplier to domains without a source. What arrives on each rail does not depend on the supplier, so it is
   * counted once for all tensors that are alike. False when a wanting domain has the supplier or shares a node.
   */
  #addByRail(cls: PlanClass, a: Atom, supplier: number): boolean {
    const { domains, topology } = this.#context;
    if (topology.splitNodes) return false;
    const cells = cls.destination.cellsOf(a.region);
    const own = topology.domain[supplier]!;
    if (cells.atoms.some((b) => positionOf(domains.of(b).domains, own) >= 0)) return false;
    const wireBytes = cls.destination.elementBytes;
    cells.atoms.forEach((b, i) => {
      for (const [rail, elements] of this.#arriving(this.#context.shares.of(cls, a, b, cells.elements[i]!))) {
        const link = rail === topology.rail[supplier] ? linkIndex.rail : linkIndex.network;
        this.#links[link]! += elements * wireBytes;
      }
    });
    return true;
  }

  /** Elements of a cell by the rail of the receiver, over all domains that want it. */
  #arriving(shares: DomainShares): ReadonlyMap<number, number> {
    const known = this.#rails.get(shares);
    if (known) return known;
    const { rail } = this.#context.topology;
    const { members, from, to } = shares;
    const arriving = new Map<number, number>();
    members.forEach((rank, i) => {
      arriving.set(rail[rank]!, (arriving.get(rail[rank]!) ?? 0) + to[i]! - from[i]!);
    });
    this.#rails.set(shares, arriving);
    return arriving;
  }
}
