// SPDX-License-Identifier: Apache-2.0
// Gives every entry (source, token, top-k position) that comes to this rank its row, and counts rows.

import { epLayouts } from '../../contract/index.js';
import { errorNumbers } from '../../errors/codes.js';
import { callWord, descriptorWord } from '../ep/ep-words.js';
import { keepRows } from './ep-drop.js';
import { condemn, countsOf, type Ep, entered, setState, slotsOf, snapshotOf } from './ep-state.js';

/** Rows of a plan, in local experts and ranks. */
interface Tally {
  readonly perExpert: Float64Array;
  readonly firstRow: Float64Array;
  readonly perSource: Float64Array;
  rows: number;
  demand: number;
}

/** Which entries are kept, by index (source x M + token) x K + k; undefined keeps all. */
export type Kept = Uint8Array | undefined;

/** Writes slots and counts of the handle; the verdict is bad when rows do not fit the budget and none may be dropped. */
export function planRows(ep: Ep): void {
  const { group, localExperts, call } = ep;
  const layout = epLayouts[call[callWord.layout]!]!;
  const tally: Tally = {
    perExpert: new Float64Array(localExperts),
    firstRow: new Float64Array(localExperts),
    perSource: new Float64Array(group.ranks),
    rows: 0,
    demand: 0,
  };
  if (layout === 'expert-major') planExperts(ep, tally);
  else if (layout === 'rank-major') planRanks(ep, tally);
  else planBudget(ep, tally, layout === 'packed');
  writeTally(ep, tally);
}

/** Rows that one expert's rows take, padded. */
export function padded(rows: number, alignment: number): number {
  return Math.ceil(rows / alignment) * alignment;
}

function planExperts(ep: Ep, tally: Tally): void {
  const slab = ep.group.ranks * ep.group.maxTokens;
  for (let expert = 0; expert < ep.localExperts; expert++) tally.firstRow[expert] = expert * slab;
  for (const source of ep.members) {
    const [experts, slots] = [snapshotOf(ep, source), ownSlots(ep, source)];
    for (let at = 0; at < experts.length; at++) {
      const local = localOf(ep, experts[at]!);
      slots[at] = local < 0 ? -1 : local * slab + tally.perExpert[local]!++;
      if (local >= 0) tally.perSource[source]!++;
    }
    tally.rows += tally.perSource[source]!;
  }
  tally.demand = tally.rows;
}

function planRanks(ep: Ep, tally: Tally): void {
  for (const source of ep.members) {
    const first = source * ep.group.maxTokens;
    const rows = placeTokens(ep, source, tally, undefined, first) - first;
    tally.perSource[source] = rows;
    tally.rows += rows;
  }
  tally.demand = tally.rows;
}

function planBudget(ep: Ep, tally: Tally, packed: boolean): void {
  const { group, call } = ep;
  const alignment = call[callWord.alignment]!;
  tally.demand = packed ? packedDemand(ep, alignment) : flatDemand(ep);
  let kept: Kept;
  if (group.budget > 0 && tally.demand > group.budget) {
    if (group.overflow === 0) {
      condemn(ep, errorNumbers.ERR_OVERFLOW, tally.demand, group.budget);
      return;
    }
    kept = keepRows(ep, packed, alignment);
  }
  if (packed) placeEntries(ep, tally, kept, alignment);
  else {
    for (const source of ep.members) {
      const end = placeTokens(ep, source, tally, kept, tally.rows);
      tally.perSource[source] = end - tally.rows;
      tally.rows = end;
    }
  }
}

/** One row per token that comes here, from row `row` on; returns the row after the last. */
function placeTokens(ep: Ep, source: number, tally: Tally, kept: Kept, row: number): number {
  const { topK, maxTokens } = ep.group;
  const [experts, slots] = [snapshotOf(ep, source), ownSlots(ep, source)];
  let next = row;
  for (let first = 0; first < experts.length; first += topK) {
    let used = false;
    for (let at = first; at < first + topK; at++) {
      const local = localOf(ep, experts[at]!);
      const taken = local >= 0 && (kept === undefined || kept[source * maxTokens * topK + first] === 1);
      slots[at] = taken ? next : -1;
      if (!taken) continue;
      used = true;
      tally.perExpert[local]!++;
    }
    if (used) next++;
  }
  return next;
}

function placeEntries(ep: Ep, tally: Tally, kept: Kept, alignment: number): void {
  const { topK, maxTokens } = ep.group;
  const isKept = (source: number, at: number): boolean =>
    kept === undefined || kept[source * maxTokens * topK + at] === 1;
  for (const source of ep.members) {
    const experts = snapshotOf(ep, source);
    for (let at = 0; at < experts.length; at++) {
      const local = localOf(ep, experts[at]!);
      if (local < 0 || !isKept(source, at)) continue;
      tally.perExpert[local]!++;
      tally.perSource[source]!++;
    }
  }
  for (let expert = 0; expert < ep.localExperts; expert++) {
    tally.firstRow[expert] = tally.rows;
    tally.rows += padded(tally.perExpert[expert]!, alignment);
  }
  const next = tally.firstRow.slice();
  for (const source of ep.members) {
    const [experts, slots] = [snapshotOf(ep, source), ownSlots(ep, source)];
    for (let at = 0; at < experts.length; at++) {
      const local = localOf(ep, experts[at]!);
      slots[at] = local >= 0 && isKept(source, at) ? next[local]!++ : -1;
    }
  }
}

function flatDemand(ep: Ep): number {
  const { topK } = ep.group;
  let rows = 0;
  for (const source of ep.members) {
    const experts = snapshotOf(ep, source);
    for (let first = 0; first < experts.length; first += topK) {
      for (let at = first; at < first + topK; at++) {
        if (localOf(ep, experts[at]!) < 0) continue;
        rows++;
        break;
      }
    }
  }
  return rows;
}

function packedDemand(ep: Ep, alignment: number): number {
  const perExpert = new Float64Array(ep.localExperts);
  for (const source of ep.members) {
    for (const physical of snapshotOf(ep, source)) {
      const local = localOf(ep, physical);
      if (local >= 0) perExpert[local]!++;
    }
  }
  return perExpert.reduce((sum, rows) => sum + padded(rows, alignment), 0);
}

/** The expert within this rank, -1 when it is elsewhere. */
export function localOf(ep: Ep, physical: number): number {
  const local = physical - ep.firstExpert;
  return local >= 0 && local < ep.localExperts ? local : -1;
}

function ownSlots(ep: Ep, source: number): Int32Array {
  return slotsOf(ep, ep.rank, source, entered(ep, source, descriptorWord.tokens));
}

function writeTally(ep: Ep, tally: Tally): void {
  const counts = countsOf(ep);
  [...tally.perExpert, ...tally.firstRow, ...tally.perSource].forEach((value, at) => {
    counts.words[at * 2] = value;
    counts.words[at * 2 + 1] = 0;
  });
  setState(counts, 'rows', tally.rows);
  setState(counts, 'demand', tally.demand);
}
