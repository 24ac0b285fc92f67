// SPDX-License-Identifier: Apache-2.0
// The cases of expert parallelism: data, and every line of the lists of upstream tests and of reports accounted for.

import { describe, expect, it } from 'vitest';
import { allCases } from '../../cases/all-cases.js';
import { epCases } from './ep-cases.js';
import { reportRows } from './report-rows.js';
import { upstreamRows } from './upstream-rows.js';

const names = allCases().map(({ name }) => name);

describe('cases of expert parallelism', () => {
  it('are data: they survive JSON', () => {
    expect(JSON.parse(JSON.stringify(epCases))).toEqual(epCases);
  });

  it('cover every test and every gap of nccl_ep', () => {
    expect(new Set(upstreamRows.map(({ what }) => what)).size).toBe(upstreamRows.length);
    for (const row of upstreamRows) {
      if (row.outcome === 'does not apply') expect(row.reason.length).toBeGreaterThan(20);
      else for (const pattern of row.provenBy) expect(names.some(matcher(pattern)), pattern).toBe(true);
    }
  });

  it('name every report that can be shown here', () => {
    const named = new Set(allCases().flatMap(({ reports = [] }) => reports));
    for (const row of reportRows) {
      for (const report of row.reports) {
        expect(report).toMatch(/^[\w-]+\/[\w-]+#\d+$/);
        expect(named.has(report), report).toBe(row.outcome === 'shown');
      }
    }
    const listed = new Set(reportRows.flatMap(({ reports }) => reports));
    const own = allCases().filter(({ group }) => group.startsWith('ep-'));
    for (const report of own.flatMap(({ reports = [] }) => reports))
      expect(listed.has(report), report).toBe(true);
  });
});

/** `*` is anything. */
function matcher(pattern: string): (name: string) => boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const expression = new RegExp(`^${parts.join('.*')}$`);
  return (name) => expression.test(name);
}
