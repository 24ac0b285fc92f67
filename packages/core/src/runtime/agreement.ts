// SPDX-License-Identifier: Apache-2.0
// What must be equal on all ranks is compared, and a difference is an error that names ranks and field (design, invariant 4).

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireObject } from '../errors/require-kind.js';
import { describe } from '../mesh/require-integer.js';

/** Values that all ranks must hold alike, by field name. */
export type AgreedFields = Readonly<Record<string, string | number | boolean | null>>;

/** Throws ERR_INVALID_ARGUMENT for a value that JSON would drop or change, as ranks that differ in it would agree. */
export function requireFields(fields: AgreedFields): void {
  requireObject('fields', fields);
  for (const [name, value] of Object.entries(fields) as [string, unknown][]) {
    const fits =
      value === null ||
      typeof value === 'string' ||
      typeof value === 'boolean' ||
      (typeof value === 'number' && Number.isFinite(value));
    if (fits) continue;
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `fields.${name} must be a string, a finite number, a boolean or null, got ${describe(value)}.`,
      { field: name, help: 'Pass anything else as text, for example its JSON or its hash.' },
    );
  }
}

/** Throws ERR_DISAGREEMENT for the first field that differs; `byRank[r]` is what rank r passed. */
export function compareFields(topic: string, byRank: readonly AgreedFields[]): void {
  const reference = byRank[0];
  if (reference === undefined) return;
  const fields = new Set(byRank.flatMap((fields) => Object.keys(fields)));
  for (const field of fields) {
    const differing = byRank.flatMap((values, rank) =>
      Object.is(values[field], reference[field]) ? [] : [rank],
    );
    const first = differing[0];
    if (first === undefined) continue;
    const expected = reference[field];
    const seen = byRank[first]?.[field];
    throw new NcclExtError(
      'ERR_DISAGREEMENT',
      `Ranks disagree on ${field} of ${topic}: rank 0 has ${show(expected)}, ${listRanks(differing)} ${show(seen)}.`,
      { op: topic, field, peer: first, expected, seen, help: `Pass the same ${field} on every rank.` },
    );
  }
}

function show(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value);
}

function listRanks(ranks: readonly number[]): string {
  const shown = ranks.slice(0, 8).join(', ');
  const more = ranks.length > 8 ? ` and ${ranks.length - 8} more` : '';
  return ranks.length === 1 ? `rank ${shown} has` : `ranks ${shown}${more} have`;
}
