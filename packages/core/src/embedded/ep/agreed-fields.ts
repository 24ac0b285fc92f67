// SPDX-License-Identifier: Apache-2.0
// Finds the field of a group's configuration in which ranks differ.

import type { EpGroupConfig, ErrorRecord } from '../../contract/index.js';
import { errorRecord } from '../host/errors.js';

/** All that ranks must agree on, by name: the fields of `agreed`, and what the backend itself relies on. */
export function agreedFields(config: EpGroupConfig): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const [name, value] of Object.entries(parse(config.agreed))) fields.set(name, JSON.stringify(value));
  const {
    agreed: _agreed,
    memory: _memory,
    layout: _layout,
    expand: _expand,
    sms: _sms,
    firstPhysical,
    expertOf,
    ...scalars
  } = config;
  for (const [name, value] of Object.entries({
    ...scalars,
    firstPhysical: [...firstPhysical],
    expertOf: [...expertOf],
  }))
    if (!fields.has(name)) fields.set(name, JSON.stringify(value));
  return fields;
}

/** What each rank is told when ranks differ, undefined when all agree. */
export function disagreementIn(
  op: string,
  parts: readonly ReadonlyMap<string, string>[],
): ((rank: number) => ErrorRecord) | undefined {
  for (const field of new Set(parts.flatMap((part) => [...part.keys()]))) {
    const values = parts.map((part) => part.get(field) ?? 'nothing');
    const common = mostCommon(values);
    const others = values.flatMap((value, rank) => (value === common ? [] : [rank]));
    if (others.length === 0) continue;
    const names = others.length === 1 ? `rank ${others[0]}` : `ranks ${others.join(', ')}`;
    return (rank) =>
      errorRecord(
        'ERR_DISAGREEMENT',
        op,
        `${names} and the others hold different values of ${field} in ${op}`,
        {
          rank,
          peer: others[0]!,
          expected: common,
          seen: values[others[0]!]!,
          help: `Every rank must pass the same ${field}.`,
        },
      );
  }
  return undefined;
}

function parse(agreed: string): object {
  try {
    const value: unknown = JSON.parse(agreed);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Any text will do; it is compared as a whole.
  }
  return { agreed };
}

function mostCommon(values: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best))[0];
}
