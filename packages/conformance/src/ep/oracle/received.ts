// SPDX-License-Identifier: Apache-2.0
// Gives every entry that reaches a rank its row there, and counts rows in all the ways that are reported.

import type { EpLayout, EpOverflow } from '@nccl-ext/core/contract';
import { keepRows } from './keep-rows.js';
import type { Entry } from './routing.js';

/** What decides where rows lie. */
export interface RowRules {
  readonly layout: EpLayout;
  readonly ranks: number;
  readonly maxTokens: number;
  /** Packed: zones are padded to multiples of this. */
  readonly alignment: number;
  /** High throughput; 0: none. */
  readonly budget: number;
  readonly overflow: EpOverflow;
}

/** A row and the entries that it stands for, in top-k order: one where each entry has a row of its own. */
export interface Row {
  readonly row: number;
  readonly source: number;
  readonly token: number;
  readonly entries: readonly Entry[];
}

/** All that one rank receives. */
export interface Received {
  readonly rank: number;
  /** By (source, token, k). */
  readonly rows: readonly Row[];
  /** Padding of packed zones: rows that hold zeros. */
  readonly padding: readonly number[];
  /** N, padding included. */
  readonly total: number;
  /** N without a budget. */
  readonly demand: number;
  /** Kept entries per local expert, without padding. */
  readonly perExpert: readonly number[];
  /** First row per local expert, where each has rows of its own. */
  readonly firstRow: readonly number[];
  /** Kept rows per source rank, without padding. */
  readonly perSource: readonly number[];
}

/** Whether an entry has a row of its own; otherwise a token has one row per rank that it reaches. */
export function hasRowPerEntry(layout: EpLayout): boolean {
  return layout === 'expert-major' || layout === 'packed';
}

/** What reaches `rank`, which has `localExperts` experts. `entries` are those of all members. */
export function receivedBy(
  rank: number,
  localExperts: number,
  entries: readonly Entry[],
  rules: RowRules,
): Received {
  const { layout, ranks } = rules;
  const units = unitsOf(
    entries.filter((entry) => entry.rank === rank),
    layout,
  );
  const demand = rowsFor(units, localExperts, rules);
  const limited = rules.budget > 0 && (layout === 'flat' || layout === 'packed') && demand > rules.budget;
  const kept =
    limited && rules.overflow !== 'error'
      ? keepRows(units, rules.overflow, (list) => rowsFor(list, localExperts, rules) <= rules.budget)
      : units;
  const perExpert = perLocal(kept, localExperts);
  const perSource = Array.from(
    { length: ranks },
    (_, source) => kept.filter(([first]) => first!.source === source).length,
  );
  return {
    rank,
    ...place(kept, perExpert, rules),
    total: rowsFor(kept, localExperts, rules),
    demand,
    perExpert,
    perSource,
  };
}

/** Entries that share a row. */
export type Unit = readonly Entry[];

function unitsOf(entries: readonly Entry[], layout: EpLayout): Unit[] {
  if (hasRowPerEntry(layout)) return entries.map((entry) => [entry]);
  const tokens = new Map<string, Entry[]>();
  for (const entry of entries) {
    const key = `${entry.source}/${entry.token}`;
    tokens.set(key, [...(tokens.get(key) ?? []), entry]);
  }
  return [...tokens.values()];
}

function perLocal(units: readonly Unit[], localExperts: number): number[] {
  const counts = new Array<number>(localExperts).fill(0);
  for (const unit of units) for (const { local } of unit) counts[local]!++;
  return counts;
}

/** Rows that units take, padding included. */
function rowsFor(units: readonly Unit[], localExperts: number, { layout, alignment }: RowRules): number {
  if (layout !== 'packed') return units.length;
  return perLocal(units, localExperts).reduce((sum, rows) => sum + padded(rows, alignment), 0);
}

/** An empty zone stays empty. */
export function padded(rows: number, alignment: number): number {
  return Math.ceil(rows / alignment) * alignment;
}

function place(
  units: readonly Unit[],
  perExpert: readonly number[],
  { layout, ranks, maxTokens, alignment }: RowRules,
): Pick<Received, 'rows' | 'padding' | 'firstRow'> {
  const padding: number[] = [];
  const firstRow = perExpert.map((_, local) => {
    if (layout === 'expert-major') return local * ranks * maxTokens;
    return perExpert.slice(0, local).reduce((sum, rows) => sum + padded(rows, alignment), 0);
  });
  if (layout === 'packed') {
    for (const [local, rows] of perExpert.entries())
      for (let row = rows; row < padded(rows, alignment); row++) padding.push(firstRow[local]! + row);
  }
  const rows = units.map((entries, index): Row => {
    const { source, token, local } = entries[0]!;
    const before = units.slice(0, index);
    const at =
      layout === 'flat'
        ? index
        : layout === 'rank-major'
          ? source * maxTokens + before.filter(([first]) => first!.source === source).length
          : firstRow[local]! + before.filter(([first]) => first!.local === local).length;
    return { row: at, source, token, entries };
  });
  return { rows, padding, firstRow };
}
