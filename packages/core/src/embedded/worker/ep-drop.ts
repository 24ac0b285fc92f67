// SPDX-License-Identifier: Apache-2.0
// Chooses the rows that a receiver keeps when more come than its budget allows.
//
// Rows are taken in the order of the policy until the first that does not fit. In `flat` a row is a token of a source; in
// `packed` it is an entry, and what counts is the padded total of all zones.

import type { EpOverflow } from '../../contract/index.js';
import { epOverflowPolicies } from '../../contract/index.js';
import { type Kept, localOf, padded } from './ep-plan.js';
import { type Ep, snapshotOf, weightsOf } from './ep-state.js';

/** 1 for kept entries by (source x M + token) x K + k; in `flat`, at the first entry of each kept token. */
export function keepRows(ep: Ep, packed: boolean, alignment: number): Kept {
  const { group } = ep;
  const policy: EpOverflow = epOverflowPolicies[group.overflow]!;
  const rows = candidates(ep, packed, policy === 'drop-by-weight');
  const kept = new Uint8Array(group.ranks * group.maxTokens * group.topK);
  const perExpert = new Float64Array(ep.localExperts);
  let total = 0;
  for (let i = 0; i < rows.index.length; i++) {
    const local = rows.expert[rows.order === undefined ? i : rows.order[i]!]!;
    const grows = packed
      ? padded(perExpert[local]! + 1, alignment) - padded(perExpert[local]!, alignment)
      : 1;
    if (total + grows > group.budget) break;
    total += grows;
    perExpert[local]!++;
    kept[rows.index[rows.order === undefined ? i : rows.order[i]!]!] = 1;
  }
  return kept;
}

interface Candidates {
  /** By (source, token, k). */
  readonly index: readonly number[];
  /** Local expert; 0 in `flat`. */
  readonly expert: readonly number[];
  /** By weight, descending; undefined where the order stays. */
  readonly order: Uint32Array | undefined;
}

function candidates(ep: Ep, packed: boolean, byWeight: boolean): Candidates {
  const { topK, maxTokens } = ep.group;
  const [index, expert, weight]: [number[], number[], number[]] = [[], [], []];
  for (const source of ep.members) {
    const experts = snapshotOf(ep, source);
    const weights = byWeight ? weightsOf(ep, source) : undefined;
    for (let first = 0; first < experts.length; first += topK) {
      let largest: number | undefined;
      for (let at = first; at < first + topK; at++) {
        const local = localOf(ep, experts[at]!);
        if (local < 0) continue;
        const own = rankOfWeight(weights?.[at] ?? 0);
        if (packed) {
          index.push(source * maxTokens * topK + at);
          expert.push(local);
          weight.push(own);
        } else largest = Math.max(largest ?? 0, own);
      }
      if (packed || largest === undefined) continue;
      index.push(source * maxTokens * topK + first);
      expert.push(0);
      weight.push(largest);
    }
  }
  return { index, expert, order: byWeight ? descending(weight) : undefined };
}

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** An unsigned 32-bit integer that orders as weights do: a NaN is the least, both zeros are equal. */
function rankOfWeight(weight: number): number {
  if (Number.isNaN(weight)) return 0;
  float[0] = weight === 0 ? 0 : weight;
  const pattern = bits[0]!;
  return pattern >= 0x80000000 ? ~pattern >>> 0 : (pattern | 0x80000000) >>> 0;
}

/** Indices by value, descending; equal ones ascending. Native sort of 64-bit keys: a comparator would take ten times as long. */
function descending(values: readonly number[]): Uint32Array {
  const keys = new BigUint64Array(values.length);
  const halves = new Uint32Array(keys.buffer);
  values.forEach((value, at) => {
    halves[at * 2] = at;
    halves[at * 2 + 1] = 0xffffffff - value;
  });
  keys.sort();
  return Uint32Array.from(values, (_, at) => halves[at * 2]!);
}
