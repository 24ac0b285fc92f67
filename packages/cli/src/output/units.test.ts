// SPDX-License-Identifier: Apache-2.0
// Every number keeps its unit and three significant digits, at the borders between units too.

import { describe, expect, it } from 'vitest';
import { binaryBytesText, bytesText, countText, rateText, ratioText, timeText } from './units.js';

describe('bytesText', () => {
  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.00 kB'],
    [1536, '1.54 kB'],
    [99_960, '100 kB'],
    [999_499, '999 kB'],
    [999_500, '1.00 MB'],
    [402_852_864, '403 MB'],
    [9_995_000_000, '10.0 GB'],
    [1.03e12, '1.03 TB'],
    [4e18, '4000 PB'],
  ])('%d is %s', (bytes, text) => {
    expect(bytesText(bytes)).toBe(text);
  });
});

describe('binaryBytesText', () => {
  it.each([
    [2 ** 28, '256 MiB'],
    [3 * 2 ** 30, '3 GiB'],
    [1024, '1 KiB'],
    [2 ** 28 + 1, '268 MB'],
    [0, '0 B'],
  ])('%d is %s', (bytes, text) => {
    expect(binaryBytesText(bytes)).toBe(text);
  });
});

describe('timeText', () => {
  it.each([
    [0, '0 ms'],
    [0.00052, '0.520 us'],
    [0.0152, '15.2 us'],
    [0.9994, '999 us'],
    [0.9996, '1.00 ms'],
    [12.34, '12.3 ms'],
    [999.4, '999 ms'],
    [999.6, '1.00 s'],
    [59_949, '59.9 s'],
    [60_000, '1 min 0 s'],
    [125_400, '2 min 5 s'],
  ])('%d ms is %s', (ms, text) => {
    expect(timeText(ms)).toBe(text);
  });
});

describe('rateText', () => {
  it.each([
    [1200, '1200 GB/s'],
    [9.4844, '9.48 GB/s'],
    [0.9996, '1.00 GB/s'],
    [0.9994, '999 MB/s'],
    [0.0123, '12.3 MB/s'],
    [0.000_004_5, '4.50 kB/s'],
    [0.000_000_012, '12 B/s'],
    [0, '0 B/s'],
  ])('%d GB/s is %s', (rate, text) => {
    expect(rateText(rate)).toBe(text);
  });
});

it('writes ratios and counts with their units', () => {
  expect(ratioText(1)).toBe('1.00 x');
  expect(countText(1, 'rank')).toBe('1 rank');
  expect(countText(2048, 'rank')).toBe('2,048 ranks');
});
