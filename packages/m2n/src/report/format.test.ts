// SPDX-License-Identifier: Apache-2.0
// Numbers keep three digits and a unit; ranks read as ranges.

import { expect, it } from 'vitest';
import { formatBytes, formatMilliseconds, formatPercent, formatRanks, formatRate } from './format.js';

it('formats', () => {
  expect([0.012, 0.5, 12.34, 999.6].map(formatMilliseconds)).toEqual([
    '0.0120 ms',
    '0.500 ms',
    '12.3 ms',
    '1.00 s',
  ]);
  expect([1200, 4.567, 0.9996, 0.0123].map(formatRate)).toEqual([
    '1200 GB/s',
    '4.57 GB/s',
    '1.00 GB/s',
    '12.3 MB/s',
  ]);
  expect([999.4e3, 999.6e3].map(formatBytes)).toEqual(['999 kB', '1.00 MB']);
  expect(formatPercent(1, 3)).toBe('33.3 %');
  expect(formatPercent(0, 0)).toBe('0.0 %');
  expect(formatRanks([3, 0, 1, 2, 6, 8, 9])).toBe('0 to 3, 6, 8 to 9');
  expect(formatRanks([])).toBe('');
});
