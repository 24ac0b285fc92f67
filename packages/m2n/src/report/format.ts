// SPDX-License-Identifier: Apache-2.0
// Numbers of the report: three significant digits and a unit. Bytes read as in the pictures.

import { bytesText } from '../plan/explain/explanation-text.js';

export { bytesText as formatBytes };

/** A rate in 10^9 bytes per second, in smaller units where it is small. */
export function formatRate(gigabytesPerSecond: number): string {
  if (gigabytesPerSecond < 0.9995) return `${bytesText(gigabytesPerSecond * 1e9)}/s`;
  return `${threeDigits(gigabytesPerSecond)} GB/s`;
}

export function formatMilliseconds(ms: number): string {
  return ms < 999.5 ? `${threeDigits(ms)} ms` : `${threeDigits(ms / 1000)} s`;
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

export function formatPercent(part: number, whole: number): string {
  return `${whole === 0 ? '0.0' : ((100 * part) / whole).toFixed(1)} %`;
}

/** Ranks as ranges, as in `0 to 3, 6`. */
export function formatRanks(ranks: Iterable<number>): string {
  const spans: [number, number][] = [];
  for (const rank of [...new Set(ranks)].sort((a, b) => a - b)) {
    const last = spans.at(-1);
    if (last !== undefined && last[1] === rank - 1) last[1] = rank;
    else spans.push([rank, rank]);
  }
  return spans.map(([first, last]) => (first === last ? `${first}` : `${first} to ${last}`)).join(', ');
}

export function threeDigits(value: number): string {
  if (value < 0.9995) return value.toPrecision(3);
  if (value >= 99.95) return value.toFixed(0);
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}
