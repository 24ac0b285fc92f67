// SPDX-License-Identifier: Apache-2.0
// Which reshards are measured, and by whom.

import { expect, it } from 'vitest';
import { besideEngines, deviceRows } from './m2n-rows.js';

const sides = { sources: [0, 1], destinations: [2, 3] };

it('measures each row by kernels and by copy engines, one after the other', () => {
  const rows = deviceRows(sides, 2 ** 24);
  const both = besideEngines(rows);
  expect(both.map(({ by }) => by)).toEqual(rows.flatMap(() => ['kernels', 'copy engines']));
  expect(both[1]).toEqual({ ...rows[0], name: 'row to row, copy engines', by: 'copy engines' });
});
