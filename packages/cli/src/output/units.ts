// SPDX-License-Identifier: Apache-2.0
// Numbers for people: three significant digits and always a unit. Units are decimal, as in GB/s.

const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const;

/** Bytes, as in `0 B`, `1.50 kB`, `403 MB`. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // 999.5 would round to "1000".
  while (value >= 999.5 && unit < byteUnits.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : digits(value)} ${byteUnits[unit]}`;
}

/** Powers of two keep their round name, as in `256 MiB`; anything else reads as {@link bytesText}. */
export function binaryBytesText(bytes: number): string {
  for (const [unit, size] of [
    ['GiB', 2 ** 30],
    ['MiB', 2 ** 20],
    ['KiB', 2 ** 10],
  ] as const) {
    if (bytes >= size && bytes % size === 0) return `${bytes / size} ${unit}`;
  }
  return bytesText(bytes);
}

/** A time given in milliseconds, as in `15.2 us`, `3.40 ms`, `12.0 s`, `2 min 5 s`. */
export function timeText(milliseconds: number): string {
  if (milliseconds === 0) return '0 ms';
  if (milliseconds < 0.9995) return `${digits(milliseconds * 1000)} us`;
  if (milliseconds < 999.5) return `${digits(milliseconds)} ms`;
  if (milliseconds < 59_950) return `${digits(milliseconds / 1000)} s`;
  const seconds = Math.round(milliseconds / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A rate in 10^9 bytes per second, in smaller units where it is small, as in `9.48 GB/s`, `12.0 MB/s`. */
export function rateText(gigabytesPerSecond: number): string {
  if (gigabytesPerSecond < 0.9995) return `${bytesText(gigabytesPerSecond * 1e9)}/s`;
  return `${digits(gigabytesPerSecond)} GB/s`;
}

/** A count with its noun, as in `1 rank`, `2,048 ranks`. */
export function countText(count: number, noun: string, plural: string = `${noun}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? noun : plural}`;
}

/** A ratio, as in `1.00 x`. */
export function ratioText(ratio: number): string {
  return `${ratio.toFixed(2)} x`;
}

function digits(value: number): string {
  if (value < 0.9995) return value.toPrecision(3);
  if (value >= 99.95) return value.toFixed(0);
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}
