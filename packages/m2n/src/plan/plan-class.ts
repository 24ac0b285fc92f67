// SPDX-License-Identifier: Apache-2.0
// Tensors whose two sides are the same form a class: everything about them is planned once and applied to each.

import { dtypes } from '@nccl-ext/core';
import { castTransform } from '@nccl-ext/core/contract';
import { DomainGrouping } from './domain-groups.js';
import { ShareTable } from './domain-shares.js';
import { Geometry } from './geometry.js';
import { MoveShape } from './move-shape.js';
import type { Atom, Member, Side } from './side.js';
import type { TopologyIndex } from './topology-index.js';

export interface PlanClass {
  readonly index: number;
  readonly source: Side;
  readonly destination: Side;
  /** First entry in the plan's tensor list of each tensor, ascending. */
  readonly entries: readonly number[];
}

/** The `transform` of moves that read the source side. */
export function transformOf({ source, destination }: PlanClass): number {
  if (source.dtype === destination.dtype) return 0;
  return castTransform(dtypes.indexOf(source.dtype), dtypes.indexOf(destination.dtype));
}

/** What all steps of planning share. */
export class PlanContext {
  readonly topology: TopologyIndex;
  readonly geometry: Geometry = new Geometry();
  readonly domains: DomainGrouping;
  readonly shares: ShareTable = new ShareTable(this);
  readonly #cuts = new Map<PlanClass, Map<number, Float64Array>>();

  constructor(topology: TopologyIndex) {
    this.topology = topology;
    this.domains = new DomainGrouping(topology);
  }

  /**
   * Where suppliers that share the demand on a source atom divide it: positions on the demand line, one more than
   * suppliers. Undefined where there is one supplier or nothing is wanted.
   *
   * @param domain whose demand; -1 for that of all domains without a source
   */
  cutsOf(cls: PlanClass, a: Atom, domain: number): Float64Array | undefined {
    return this.#cuts.get(cls)?.get(cutKey(a, domain));
  }

  setCuts(cls: PlanClass, a: Atom, domain: number, cuts: Float64Array): void {
    let known = this.#cuts.get(cls);
    if (!known) {
      known = new Map();
      this.#cuts.set(cls, known);
    }
    known.set(cutKey(a, domain), cuts);
  }

  /** How the elements of a cell lie at a source holder (or, when it forwards, at a destination holder) and at a destination holder. */
  shape(cls: PlanClass, a: Atom, b: Atom, reader: Member, writer: Member, forwards: boolean): MoveShape {
    const overlaps = a.region.dims.map((dim, d) => this.geometry.overlap(dim, b.region.dims[d]!).items);
    const { elementBytes } = cls.destination;
    return new MoveShape(
      overlaps,
      { ...reader, elementBytes: forwards ? elementBytes : cls.source.elementBytes },
      { ...writer, elementBytes },
      forwards,
    );
  }
}

/** Domains are below 2^31 and atoms below 2^21. */
function cutKey({ index }: Atom, domain: number): number {
  return index * 2 ** 32 + domain + 1;
}
