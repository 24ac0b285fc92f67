// SPDX-License-Identifier: Apache-2.0
// Answers what people ask of a plan: how much moves, who is busiest, what limits it, and which tensors matter.

import { type DType, linkClasses, type Topology } from '@nccl-ext/core';
import type { PlanClass, PlanContext } from '../plan-class.js';
import type { PlanTotals } from '../plan-totals.js';
import { explanationText } from './explanation-text.js';
import { type Prediction, predict } from './predict.js';
import { measureTraffic, type Traffic, trafficIndex } from './traffic.js';

/** Entries of the lists of busiest ranks and largest tensors. */
const listed = 10;

export interface RankBytes {
  readonly rank: number;
  readonly bytes: number;
}

export interface CastSummary {
  readonly from: DType;
  readonly to: DType;
  readonly tensors: number;
  /** As written at all destinations. */
  readonly bytes: number;
}

export interface TensorSummary {
  readonly name: string;
  /** Bytes of the global tensor in the destination's dtype. */
  readonly bytes: number;
  readonly sourceRanks: number;
  readonly destinationRanks: number;
}

/** Plain data, so it can be stored as JSON; `toString()` is for people. All bytes are those of one execution. */
export class PlanExplanation {
  readonly digest: string;
  readonly worldSize: number;
  readonly patterns: number;
  readonly totals: PlanTotals;
  readonly prediction: Prediction;
  /** The ranks that send most to others, busiest first. */
  readonly topSenders: readonly RankBytes[];
  readonly topReceivers: readonly RankBytes[];
  /** Bytes from row to column; each row stands for `ranksPerRow` consecutive ranks, 1 up to 64 ranks. The diagonal has local copies. */
  readonly matrix: readonly (readonly number[])[];
  readonly ranksPerRow: number;
  readonly casts: readonly CastSummary[];
  readonly largestTensors: readonly TensorSummary[];

  /** @internal */
  constructor(input: ExplanationInput) {
    const { context, classes, worldSize, topology, totals } = input;
    const traffic = measureTraffic(context, classes, worldSize);
    this.digest = input.digest;
    this.worldSize = worldSize;
    this.patterns = input.patterns;
    this.totals = totals;
    this.prediction = predict(traffic, topology, worldSize);
    this.topSenders = busiest(traffic.sent, worldSize);
    this.topReceivers = busiest(traffic.received, worldSize);
    this.matrix = traffic.matrix.map((row) => [...row]);
    this.ranksPerRow = traffic.ranksPerRow;
    this.casts = castsOf(classes);
    this.largestTensors = largestOf(classes, input.nameOf);
  }

  /** Several lines of text. */
  toString(): string {
    return explanationText(this);
  }
}

/** @internal */
export interface ExplanationInput {
  readonly digest: string;
  readonly worldSize: number;
  readonly topology: Topology;
  readonly patterns: number;
  readonly totals: PlanTotals;
  readonly context: PlanContext;
  readonly classes: readonly PlanClass[];
  /** The name of an entry of the plan's tensor list. */
  readonly nameOf: (entry: number) => string;
}

function busiest(table: Traffic['sent'], worldSize: number): RankBytes[] {
  const all: RankBytes[] = [];
  for (let rank = 0; rank < worldSize; rank++) {
    let bytes = 0;
    for (const stage of [0, 1]) {
      linkClasses.forEach((name, link) => {
        if (name !== 'self') bytes += table[trafficIndex(stage, rank, link, worldSize)]!;
      });
    }
    if (bytes > 0) all.push({ rank, bytes });
  }
  return all.sort((x, y) => y.bytes - x.bytes || x.rank - y.rank).slice(0, listed);
}

function castsOf(classes: readonly PlanClass[]): CastSummary[] {
  const casts = new Map<string, CastSummary>();
  for (const { source, destination, entries } of classes) {
    if (source.dtype === destination.dtype) continue;
    const key = `${source.dtype}>${destination.dtype}`;
    const before = casts.get(key) ?? { from: source.dtype, to: destination.dtype, tensors: 0, bytes: 0 };
    const written = destination.atoms.reduce(
      (sum, { region, ranks }) => sum + region.elements * ranks.length,
      0,
    );
    casts.set(key, {
      ...before,
      tensors: before.tensors + entries.length,
      bytes: before.bytes + written * entries.length * destination.elementBytes,
    });
  }
  return [...casts.values()];
}

function largestOf(classes: readonly PlanClass[], nameOf: (entry: number) => string): TensorSummary[] {
  const bytesOf = ({ destination }: PlanClass): number =>
    destination.shape.reduce((product, extent) => product * extent, destination.elementBytes);
  return [...classes]
    .sort((x, y) => bytesOf(y) - bytesOf(x) || x.index - y.index)
    .slice(0, listed)
    .flatMap((cls) => {
      const bytes = bytesOf(cls);
      const ranksOf = (side: PlanClass['source']): number =>
        new Set(side.atoms.flatMap(({ ranks }) => [...ranks])).size;
      const [sourceRanks, destinationRanks] = [ranksOf(cls.source), ranksOf(cls.destination)];
      return cls.entries
        .slice(0, listed)
        .map((entry) => ({ name: nameOf(entry), bytes, sourceRanks, destinationRanks }));
    })
    .slice(0, listed);
}
