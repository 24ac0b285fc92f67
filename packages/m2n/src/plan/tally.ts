// SPDX-License-Identifier: Apache-2.0
// The running figures of a plan while it is made.

import { type LinkClass, linkClasses } from '@nccl-ext/core';
import type { PlanClass } from './plan-class.js';
import type { PlanTotals } from './plan-totals.js';
import { linkIndex } from './topology-index.js';

export class Tally {
  /** Bytes that each rank sends to others. */
  readonly sent: Float64Array;
  /** Bytes by position in `linkClasses`. */
  readonly links: Float64Array = new Float64Array(linkClasses.length);
  lowerBound = 0;
  /** What must enter domains that have no source. */
  entering = 0;
  forwarded = 0;
  readonly #isSource: Uint8Array;

  constructor(classes: readonly PlanClass[], worldSize: number) {
    this.sent = new Float64Array(worldSize);
    this.#isSource = new Uint8Array(worldSize);
    for (const { source } of classes) {
      for (const { ranks } of source.atoms) {
        for (let i = 0; i < ranks.length; i++) this.#isSource[ranks[i]!] = 1;
      }
    }
  }

  /** Whether the rank is a source of any tensor. */
  isSource(rank: number): boolean {
    return this.#isSource[rank] === 1;
  }

  /** Copies of a rank to itself. */
  addLocal(bytes: number): void {
    this.links[linkIndex.self]! += bytes;
  }

  get sourceRanks(): number {
    return this.#isSource.reduce((sum, is) => sum + is, 0);
  }

  /** What source ranks send. */
  get sentBySources(): number {
    return this.sent.reduce((sum, bytes, rank) => (this.isSource(rank) ? sum + bytes : sum), 0);
  }

  totals(tensors: number): PlanTotals {
    const entries = linkClasses.map((name, i) => [name, this.links[i]!] as const);
    const bytesByLink = Object.fromEntries(entries) as Record<LinkClass, number>;
    const localBytes = bytesByLink.self;
    return {
      tensors,
      lowerBoundBytes: this.lowerBound,
      wireBytes: this.links.reduce((sum, bytes) => sum + bytes, 0) - localBytes,
      interDomainBytes: bytesByLink.node + bytesByLink.rail + bytesByLink.network,
      interDomainLowerBoundBytes: this.entering,
      forwardedBytes: this.forwarded,
      localBytes,
      maxRankBytes: this.sent.reduce(
        (most, bytes, rank) => (this.isSource(rank) ? Math.max(most, bytes) : most),
        0,
      ),
      meanRankBytes: this.sentBySources / Math.max(1, this.sourceRanks),
      bytesByLink,
    };
  }
}
