// SPDX-License-Identifier: Apache-2.0
// The table on the embedded backend. TEST_LARGE=1 adds the groups that take long.

import { env } from 'node:process';
import { localWorld } from '@nccl-ext/core';
import { afterAll, describe, it } from 'vitest';
import { type GroupName, groups } from './cases/groups.js';
import { selectCases } from './cases/select-cases.js';
import { runCase } from './run/run-case.js';
import { WorldPool } from './run/world-pool.js';

const pool = new WorldPool((request) => localWorld({ ...request, backend: 'embedded', logLevel: 'error' }));
afterAll(() => pool.dispose());

const longLimitMs = 3_600_000;
const wanted = (Object.keys(groups) as GroupName[]).filter(
  (group) => groups[group].always || env.TEST_LARGE === '1',
);

describe.each(wanted)('%s', (group) => {
  it.each(selectCases({ group }).map((conformanceCase) => [conformanceCase.name, conformanceCase] as const))(
    '%s',
    { timeout: groups[group].always ? 120_000 : longLimitMs },
    async (_name, conformanceCase) => {
      const { status, detail } = await runCase(pool, conformanceCase);
      if (status !== 'passed') throw new Error(`${status}: ${detail}`);
    },
  );
});
