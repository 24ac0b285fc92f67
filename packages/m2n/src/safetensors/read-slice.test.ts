// SPDX-License-Identifier: Apache-2.0
// Slices are read in the order of their runs, through a bounded buffer, whatever the shape.

import { join } from 'node:path';
import type { DimRuns } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesOf, entry, folder, useFolder } from './checkpoint-folder.test-util.js';
import { openCheckpoint } from './open-checkpoint.js';
import { writeCheckpoint } from './write-checkpoint.js';

useFolder();

describe('readSlice', () => {
  /** Runs that hold the given indices in this order, one run each. */
  const runsOf = (indices: readonly number[]): DimRuns => ({
    extent: indices.length,
    runs: indices.map((start, local) => ({ start, length: 1, stride: 1, count: 1, local })),
  });

  it('equals a naive gather, whatever the shape and the runs', async () => {
    const path = join(folder, 'slices.safetensors');
    const shapes = [[7], [5, 6], [1, 9], [4, 3, 5], [2, 3, 2, 4], []];
    await writeCheckpoint(
      path,
      shapes.map((shape, i) => ({
        name: String(i),
        dtype: 'i16' as const,
        shape,
        data: [bytesOf(2 * shape.reduce((a, b) => a * b, 1), i * 1000)],
      })),
    );
    await using checkpoint = await openCheckpoint(path);
    const scenario = fc
      .nat(shapes.length - 1)
      .chain((which) =>
        fc.tuple(
          fc.constant(which),
          fc.tuple(
            ...shapes[which]!.map((extent) =>
              fc.oneof(
                fc.constant(Array.from({ length: extent }, (_, i) => i)),
                fc.subarray(Array.from({ length: extent }, (_, i) => i)),
                fc.shuffledSubarray(Array.from({ length: extent }, (_, i) => i)),
              ),
            ),
          ),
        ),
      );
    await fc.assert(
      fc.asyncProperty(scenario, async ([which, indices]) => {
        const shape = shapes[which]!;
        const all = bytesOf(2 * shape.reduce((a, b) => a * b, 1), which * 1000);
        let offsets = [0];
        for (const [dim, list] of indices.entries()) {
          offsets = offsets.flatMap((base) => list.map((index) => base * shape[dim]! + index));
        }
        const expected = offsets.flatMap((offset) => [all[2 * offset]!, all[2 * offset + 1]!]);
        const target = new Uint8Array(expected.length);
        await checkpoint.readSlice(String(which), indices.map(runsOf), target);
        expect([...target]).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  it('reads large slices through a bounded buffer, side by side', async () => {
    const path = join(folder, 'large.safetensors');
    const [rows, columns] = [1536, 8192];
    const data = bytesOf(rows * columns);
    await writeCheckpoint(path, [{ name: 'w', dtype: 'u8', shape: [rows, columns], data: [data] }]);
    await using checkpoint = await openCheckpoint(path);
    const whole = (extent: number): DimRuns => ({
      extent,
      runs: [{ start: 0, length: extent, stride: extent, count: 1, local: 0 }],
    });
    const part = (start: number, length: number): DimRuns => ({
      extent: length,
      runs: [{ start, length, stride: length, count: 1, local: 0 }],
    });
    const halves = (length: number): DimRuns => ({
      extent: 2 * length,
      runs: [{ start: 0, length, stride: columns / 2, count: 2, local: 0 }],
    });
    const plans: [DimRuns, DimRuns][] = [
      [part(384, 384), whole(columns)],
      [whole(rows), part(2048, 2048)],
      [part(1, 1500), halves(100)],
    ];
    await Promise.all(
      plans.map(async (runs) => {
        const target = new Uint8Array(runs[0].extent * runs[1].extent);
        await checkpoint.readSlice('w', runs, target);
        const columnList = runs[1].runs.flatMap(({ start, length, stride, count }) =>
          Array.from(
            { length: count * length },
            (_, i) => start + Math.floor(i / length) * stride + (i % length),
          ),
        );
        let differences = 0;
        for (let i = 0; i < target.length; i++) {
          const row = runs[0].runs[0]!.start + Math.floor(i / columnList.length);
          if (target[i] !== data[row * columns + columnList[i % columnList.length]!]) differences++;
        }
        expect(differences).toBe(0);
      }),
    );
  });

  it('refuses runs and targets that do not fit', async () => {
    const path = join(folder, 'fit.safetensors');
    await writeCheckpoint(path, [entry('w', [4, 2])]);
    await using checkpoint = await openCheckpoint(path);
    const read = (runs: DimRuns[], bytes: number) => checkpoint.readSlice('w', runs, new Uint8Array(bytes));
    await expect(read([runsOf([0])], 1)).rejects.toThrow(/runs: 1 lists for 2 dimensions/);
    await expect(read([runsOf([4]), runsOf([0])], 1)).rejects.toThrow(
      /runs\[0\]: reach to 5, beyond the extent 4/,
    );
    await expect(read([runsOf([3]), runsOf([0])], 2)).rejects.toThrow(/target: has 2 bytes, the slice has 1/);
  });
});
