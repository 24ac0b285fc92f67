// SPDX-License-Identifier: Apache-2.0
// Lists the ranks of one side that hold equal parameters: the replicas of one place in the pipeline, tensor and expert grids.

import type { Parallelism } from './parallelism.js';

/** One side of a refit. */
export interface Side {
  readonly parallelism: Parallelism;
  /** The first of its ranks. */
  readonly firstRank: number;
}

/** The ranks at coordinate `tp` of a stage: one per dp and cp coordinate, ascending. */
export function denseRanks({ parallelism, firstRank }: Side, stage: number, tp: number): number[] {
  const replicas = parallelism.dp * parallelism.cp;
  const first = firstRank + stage * replicas * parallelism.tp + tp;
  return Array.from({ length: replicas }, (_, i) => first + i * parallelism.tp);
}

/** The ranks at coordinates `ep`, `etp` of a stage: one per edp coordinate, ascending. */
export function expertRanks(
  { parallelism, firstRank }: Side,
  stage: number,
  ep: number,
  etp: number,
): number[] {
  const group = parallelism.ep * parallelism.etp;
  const first = firstRank + stage * parallelism.edp * group + ep * parallelism.etp + etp;
  return Array.from({ length: parallelism.edp }, (_, i) => first + i * group);
}
