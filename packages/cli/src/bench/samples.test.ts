// SPDX-License-Identifier: Apache-2.0
// Figures are medians of many samples, and the measured reshards are what their names say.

import { createPlan } from '@nccl-ext/m2n';
import { expect, it } from 'vitest';
import { fillRandom } from './fill-random.js';
import { m2nRows } from './m2n-rows.js';
import { median, repeatTimed } from './samples.js';
import { sidesOf } from './sides.js';

it('takes the middle', () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([7])).toBe(7);
});

it('takes turns, ignores the first rounds, and ends on an abort', async () => {
  const order: string[] = [];
  const measure = (name: string) => async () => order.push(name);
  const [first, second] = await repeatTimed([measure('a'), measure('b')], new AbortController().signal);
  expect(first!.length).toBeGreaterThanOrEqual(9);
  expect(second).toHaveLength(first!.length);
  expect(order.slice(0, 4)).toEqual(['a', 'b', 'a', 'b']);
  expect(first![0]).toBeGreaterThan(2);
  const controller = new AbortController();
  controller.abort(new Error('stop'));
  await expect(repeatTimed([async () => 1], controller.signal)).rejects.toThrow('stop');
});

it('takes the slowest process, and goes on as long as the first one does', async () => {
  const asked: unknown[] = [];
  const together = {
    slowest: async (ms: number) => ms + 1,
    agreed: async <T>(value: T): Promise<T> => {
      asked.push(value);
      return (asked.length <= 2) as T;
    },
  };
  const { signal } = new AbortController();
  const [samples] = await repeatTimed([async () => 1], signal, { together, budgetMs: 0 });
  expect(samples).toEqual(Array.from({ length: 11 }, () => 2));
  expect(asked).toEqual([false, false, false]);
});

it('fills all of the memory', () => {
  const memory = new Uint8Array(new SharedArrayBuffer(5 * 2 ** 20));
  fillRandom((at, length) => memory.subarray(at, at + length), memory.length);
  const counts = new Float64Array(256);
  for (const byte of memory) counts[byte]! += 1;
  expect(Math.min(...counts)).toBeGreaterThan((0.9 * memory.length) / 256);
});

it.each([
  [8, 2 ** 28],
  [4, 2 ** 24],
  [16, 2 ** 26],
  [64, 2 ** 24],
])('makes rows for %i ranks and %i bytes', (ranks, bytes) => {
  const sides = sidesOf(Array.from({ length: ranks }, () => 'one'));
  for (const { name, source, destination } of m2nRows(sides, bytes)) {
    expect(source.shape).toEqual(destination.shape);
    expect(source.bytes).toBeLessThanOrEqual(bytes);
    expect(source.bytes).toBeGreaterThan(bytes / 2);
    const { totals } = createPlan({ worldSize: ranks, tensors: [{ name, source, destination }] });
    const copies = name.includes('replicas') ? 2 : 1;
    expect(totals.wireBytes).toBe(source.bytes * copies);
  }
});
