// SPDX-License-Identifier: Apache-2.0
// Numbers keep three digits and a unit; ranks read as ranges.

import { expect, it } from 'vitest';
import { formatMilliseconds, formatPercent, formatRanks } from './format.js';

it('formats', () => {
  expect([0.5, 12.34, 999.6].map(formatMilliseconds)).toEqual(['0.50 ms', '12.3 ms', '1.00 s']);
  expect(formatPercent(1, 3)).toBe('33.3 %');
  expect(formatPercent(0, 0)).toBe('0.0 %');
  expect(formatRanks([3, 0, 1, 2, 6, 8, 9])).toBe('0 to 3, 6, 8 to 9');
  expect(formatRanks([])).toBe('');
});
