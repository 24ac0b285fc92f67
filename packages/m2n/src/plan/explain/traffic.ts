// SPDX-License-Identifier: Apache-2.0
// Adds up what every rank sends and receives over each class of link, and between which groups of ranks it goes.

import { linkClasses } from '@nccl-ext/core';
import type { PlanClass, PlanContext } from '../plan-class.js';
import { eachFlow } from './each-flow.js';

/** Matrices have at most this many rows; larger worlds are summed into groups of consecutive ranks. */
const matrixRows = 64;

export interface Traffic {
  /** Bytes by (stage, rank, link class), flattened. */
  readonly sent: Float64Array;
  readonly received: Float64Array;
  /** Bytes by (group of the sender, group of the receiver); local copies are on the diagonal. */
  readonly matrix: readonly Float64Array[];
  /** Consecutive ranks per row of the matrix. */
  readonly ranksPerRow: number;
  /** Per rank, bytes of which it is the only source and that others want, each counted once. */
  readonly onlySource: Float64Array;
}

/** Position in `sent` and `received`. */
export function trafficIndex(stage: number, rank: number, link: number, worldSize: number): number {
  return (stage * worldSize + rank) * linkClasses.length + link;
}

export function measureTraffic(
  context: PlanContext,
  classes: readonly PlanClass[],
  worldSize: number,
): Traffic {
  const ranksPerRow = Math.ceil(worldSize / matrixRows);
  const rows = Math.ceil(worldSize / ranksPerRow);
  const matrix = Array.from({ length: rows }, () => new Float64Array(rows));
  const sent = new Float64Array(2 * worldSize * linkClasses.length);
  const received = new Float64Array(sent.length);
  const onlySource = new Float64Array(worldSize);
  for (const cls of classes) {
    const { elementBytes } = cls.destination;
    eachFlow(context, cls, (stage, sender, receiver, elements) => {
      const bytes = elements * elementBytes;
      const link = context.topology.link(sender, receiver);
      sent[trafficIndex(stage, sender, link, worldSize)]! += bytes;
      received[trafficIndex(stage, receiver, link, worldSize)]! += bytes;
      const row = matrix[Math.floor(sender / ranksPerRow)]!;
      row[Math.floor(receiver / ranksPerRow)]! += bytes;
    });
    for (const a of cls.source.atoms) {
      if (a.ranks.length > 1) continue;
      const rank = a.ranks[0]!;
      const { atoms, elements } = cls.destination.cellsOf(a.region);
      atoms.forEach((b, i) => {
        const others = b.ranks.length > 1 || b.ranks[0] !== rank;
        if (others) onlySource[rank]! += elements[i]! * cls.entries.length * elementBytes;
      });
    }
  }
  return { sent, received, matrix, ranksPerRow, onlySource };
}
