// SPDX-License-Identifier: Apache-2.0
// Reads how a model is spread over ranks, as in `tp=4,pp=2`, and shows the arithmetic where the numbers do not fit.

import { NcclExtError } from '@nccl-ext/core';
import { describe, requireObject } from '@nccl-ext/core/extend';

/**
 * The sizes of one side. The world is pp x dp x cp x tp with tp fastest; experts fold over the ranks of a stage:
 * edp x ep x etp = dp x cp x tp with etp fastest.
 */
export interface Parallelism {
  /** Ranks in all. */
  readonly ranks: number;
  /** Pipeline stages. */
  readonly pp: number;
  /** Data-parallel replicas. */
  readonly dp: number;
  /** Context-parallel ranks; they hold equal parameters. */
  readonly cp: number;
  /** Ranks that share one layer. */
  readonly tp: number;
  /** Replicas of the experts. */
  readonly edp: number;
  /** Ranks, or groups of etp ranks, that share the experts of a layer. */
  readonly ep: number;
  /** Ranks that share one expert. */
  readonly etp: number;
}

/** The sizes that are given; the others follow. */
export type ParallelSizes = Partial<Parallelism>;

const keys: readonly (keyof Parallelism)[] = ['ranks', 'pp', 'dp', 'cp', 'tp', 'edp', 'ep', 'etp'];

/**
 * Completes the sizes of a side. All default to 1; dp follows from `ranks`, edp from the ranks of a stage, and etp is tp
 * where ep is 1.
 *
 * @throws ERR_PARALLELISM when a size is malformed or the sizes do not multiply up.
 * @example
 * ```ts
 * parallelism('tp=4,pp=2').ranks; // 8
 * parallelism({ ranks: 2048, pp: 16, ep: 128 }).dp; // 128
 * ```
 */
export function parallelism(input: string | ParallelSizes): Parallelism {
  const given = typeof input === 'string' ? parseSizes(input) : checkSizes(input);
  const { pp = 1, cp = 1, tp = 1, ep = 1 } = given;
  const model = pp * cp * tp;
  if (given.ranks !== undefined && given.ranks % model !== 0) {
    throw unfit('ranks', `ranks ${given.ranks} is no multiple of pp ${pp} x cp ${cp} x tp ${tp} = ${model}`);
  }
  const dp = given.dp ?? (given.ranks ?? model) / model;
  const ranks = given.ranks ?? model * dp;
  if (ranks !== model * dp) {
    throw unfit('ranks', `pp ${pp} x dp ${dp} x cp ${cp} x tp ${tp} = ${model * dp}, but ranks is ${ranks}`);
  }
  const etp = given.etp ?? (ep === 1 ? tp : 1);
  const stage = dp * cp * tp;
  const stageText = `dp ${dp} x cp ${cp} x tp ${tp} = ${stage} ranks of a stage`;
  if (stage % (ep * etp) !== 0) {
    throw unfit('ep', `ep ${ep} x etp ${etp} = ${ep * etp} does not divide the ${stageText}`);
  }
  const edp = given.edp ?? stage / (ep * etp);
  if (edp * ep * etp !== stage) {
    throw unfit('edp', `edp ${edp} x ep ${ep} x etp ${etp} = ${edp * ep * etp}, but the ${stageText}`);
  }
  return { ranks, pp, dp, cp, tp, edp, ep, etp };
}

function parseSizes(text: string): ParallelSizes {
  const sizes: Partial<Record<keyof Parallelism, number>> = {};
  for (const part of text.split(',').map((piece) => piece.trim())) {
    const match = /^([a-z]+)=(\d+)$/.exec(part);
    const key = keys.find((name) => name === match?.[1]);
    if (match === null || key === undefined) {
      throw malformed(text, `${JSON.stringify(part)} in ${JSON.stringify(text)} must be NAME=NUMBER`);
    }
    if (sizes[key] !== undefined) throw malformed(key, `${key} occurs twice in ${JSON.stringify(text)}`);
    sizes[key] = Number(match[2]);
  }
  return checkSizes(sizes);
}

const maxRanks = 2 ** 24;

function checkSizes(sizes: ParallelSizes): ParallelSizes {
  requireObject('sizes', sizes, 'ERR_PARALLELISM');
  for (const [key, value] of Object.entries(sizes)) {
    if (!keys.some((name) => name === key)) throw malformed(key, `${JSON.stringify(key)} is no size`);
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 1 && value <= maxRanks)) {
      throw malformed(key, `${key} must be an integer in 1..${maxRanks}, got ${describe(value)}`);
    }
  }
  return sizes;
}

function malformed(field: string, message: string): NcclExtError {
  const help = `Sizes are ${keys.join(', ')}, as in tp=4,pp=2 or ranks=2048,pp=16,ep=128.`;
  return new NcclExtError('ERR_PARALLELISM', message, { field, help });
}

function unfit(field: string, message: string): NcclExtError {
  const help = 'ranks = pp x dp x cp x tp, and edp x ep x etp = dp x cp x tp; dp follows from ranks.';
  return new NcclExtError('ERR_PARALLELISM', message, { field, help });
}
