// SPDX-License-Identifier: Apache-2.0
// Makes cases of the rows that can be tried.

import type { CheckCase } from '../cases/case.js';
import { expectRefusal } from '../run/check-context.js';
import { ncclM2nRows } from './nccl-m2n-rows.js';
import { ownRows } from './own-rows.js';

export const refusalCases: readonly CheckCase[] = [...ncclM2nRows, ...ownRows].flatMap((row) =>
  row.outcome === 'refused'
    ? [
        {
          kind: 'check',
          name: `refusals/${row.what}`,
          group: 'refusals',
          ranks: row.ranks,
          run: (context) => expectRefusal(() => row.attempt(context), row.error),
        },
      ]
    : [],
);
