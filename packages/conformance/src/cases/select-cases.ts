// SPDX-License-Identifier: Apache-2.0
// Chooses cases by group, name and number of ranks.

import { NcclExtError } from '@nccl-ext/core';
import { allCases } from './all-cases.js';
import type { ConformanceCase } from './case.js';
import { type GroupName, groups } from './groups.js';

/** All given conditions must hold. */
export interface CaseSelection {
  /** One group or several, `ep` (all of expert parallelism) or `all`; default: every group that does not take long. */
  readonly group?: string | readonly string[];
  /** Part of the name, or several of which one must be in it; case does not matter. */
  readonly filter?: string | readonly string[];
  /** Leaves out cases that need more ranks. */
  readonly maxRanks?: number;
}

/**
 * The cases of a selection, in the order of the table.
 *
 * @throws ERR_INVALID_ARGUMENT for a group that does not exist.
 * @example
 * ```ts
 * selectCases({ group: 'graphs', maxRanks: 8 });
 * ```
 */
export function selectCases({
  group,
  filter = '',
  maxRanks,
}: CaseSelection = {}): readonly ConformanceCase[] {
  const wanted = new Set(group === undefined ? alwaysGroups() : groupNames(group));
  const texts = [filter].flat().map((text) => text.toLowerCase());
  return allCases().filter(
    (candidate) =>
      wanted.has(candidate.group) &&
      texts.some((text) => candidate.name.toLowerCase().includes(text)) &&
      candidate.ranks <= (maxRanks ?? Number.POSITIVE_INFINITY),
  );
}

const names = Object.keys(groups) as GroupName[];

function alwaysGroups(): readonly GroupName[] {
  return names.filter((name) => groups[name].always);
}

function groupNames(group: string | readonly string[]): readonly GroupName[] {
  const asked = [group].flat();
  const unknown = asked.find((name) => name !== 'all' && name !== 'ep' && !Object.hasOwn(groups, name));
  if (unknown !== undefined) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `group must be one of all, ep, ${names.join(', ')}, not ${unknown}.`,
      {
        field: 'group',
        expected: names,
        seen: unknown,
      },
    );
  }
  if (asked.includes('all')) return names;
  return asked.flatMap((name) =>
    name === 'ep' ? names.filter((other) => other.startsWith('ep-')) : [name as GroupName],
  );
}
