// SPDX-License-Identifier: Apache-2.0
// The table itself: complete, unique, and every line of the list of refusals accounted for.

import { dtypes } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { ncclM2nRows } from '../refusals/nccl-m2n-rows.js';
import { allCases } from './all-cases.js';
import type { M2nCase } from './case.js';
import { gridCases, largeGridCases } from './grid-cases.js';
import { type GroupName, groups } from './groups.js';
import { selectCases } from './select-cases.js';

const cases = allCases();
const moves = cases.filter((candidate): candidate is M2nCase => candidate.kind === 'move');

describe('the table', () => {
  it('has unique names that start with their group', () => {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
    for (const { name, group } of cases) expect(name.startsWith(`${group}/`)).toBe(true);
  });

  it('has cases in every group', () => {
    const used = new Set(cases.map(({ group }) => group));
    expect([...used].sort()).toEqual(Object.keys(groups).sort());
  });

  it('is data: moves survive JSON', () => {
    expect(JSON.parse(JSON.stringify(moves))).toEqual(moves);
  });

  it('has the 8-rank matrix of nccl_m2n', () => {
    const at8 = (list: readonly M2nCase[], group: GroupName): number =>
      list.filter((move) => move.group === group && move.ranks === 8).length;
    expect(at8(gridCases, 'replication')).toBe(3);
    expect(at8(gridCases, 'sharding')).toBe(12);
    expect(at8(gridCases, 'mesh-2d')).toBe(48);
    expect(at8(gridCases, 'rank-ratio')).toBe(32);
    expect(at8(gridCases, 'tensor-size')).toBe(48);
    expect(at8(gridCases, 'three-dims')).toBe(14);
    expect(at8(gridCases, 'one-dim')).toBe(3 + 12 + 8 + 8);
    expect(largeGridCases.length).toBe(32 + 4);
  });

  it('moves every dtype', () => {
    const moved = new Set(
      moves.filter(({ group }) => group === 'dtypes').map(({ tensors }) => tensors[0]!.dtype),
    );
    expect([...moved].sort()).toEqual([...dtypes].sort());
  });

  it('accounts for every line of the list of refusals', () => {
    const names = new Set(cases.map(({ name }) => name));
    for (const row of ncclM2nRows) {
      if (row.outcome === 'supported') expect(names, row.what).toContain(row.provenBy);
      if (row.outcome === 'does not apply') expect(row.reason.length).toBeGreaterThan(20);
      if (row.outcome === 'refused') expect(names, row.what).toContain(`refusals/${row.what}`);
    }
  });
});

describe('selection', () => {
  it('leaves out what takes long unless it is asked for', () => {
    const usual = new Set(selectCases().map(({ group }) => group));
    expect(usual.has('large') || usual.has('soak')).toBe(false);
    expect(selectCases({ group: 'large' }).length).toBeGreaterThan(0);
    expect(selectCases({ group: 'all' }).length).toBe(cases.length);
  });

  it('takes all groups of expert parallelism by one name', () => {
    const chosen = new Set(selectCases({ group: 'ep' }).map(({ group }) => group));
    expect(chosen.size).toBeGreaterThan(10);
    expect([...chosen].every((group) => group.startsWith('ep-'))).toBe(true);
  });

  it('goes by group, part of the name and ranks', () => {
    const chosen = selectCases({ group: ['graphs', 'streams'], filter: 'REPLAY', maxRanks: 4 });
    expect(chosen.length).toBeGreaterThan(0);
    for (const { group, name, ranks } of chosen) {
      expect(group).toBe('graphs');
      expect(name).toContain('replay');
      expect(ranks).toBeLessThanOrEqual(4);
    }
  });

  it('refuses a group that does not exist', () => {
    expect(() => selectCases({ group: 'graph' })).toThrow(
      /group must be one of all, ep, replication, .*not graph/,
    );
  });
});
