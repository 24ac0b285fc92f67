// SPDX-License-Identifier: Apache-2.0
// Pieces hold every element of a part once, at its place, and reach no further than promised, whichever dimension lies outermost.

import { dimRuns } from '@nccl-ext/core';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Part, sidePattern } from '../plan/side-pattern.js';
import { denseRows, partPieces, pieceRange } from './part-pieces.js';

/** Extents, the dimensions from outermost to innermost in memory, and elements that lie unused behind each of them. */
const storages = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 4 }).chain((extents) =>
  fc.record({
    extents: fc.constant(extents),
    order: fc.shuffledSubarray([...extents.keys()], { minLength: extents.length }),
    gaps: fc.array(fc.nat(3), { minLength: extents.length, maxLength: extents.length }),
    byteOffset: fc.nat(8).map((elements) => 4 * elements),
    mostBytes: fc.integer({ min: 4, max: 2000 }),
  }),
);

it('hold every element once, each within its size', () => {
  fc.assert(
    fc.property(storages, ({ extents, order, gaps, byteOffset, mostBytes }) => {
      const byteStrides: number[] = [];
      let step = 4;
      for (const d of order.toReversed()) {
        byteStrides[d] = step;
        step = step * extents[d]! + 4 * gaps[d]!;
      }
      const part = partOf(extents, byteStrides, byteOffset);
      const seen: number[][] = [];
      for (const piece of partPieces(part, 'f32', mostBytes)) {
        const { byteOffset: first, bytes } = pieceRange(piece, 'f32', 0);
        expect(bytes).toBeLessThanOrEqual(mostBytes);
        const places = [...denseRows(piece, 'f32')].flatMap((row) =>
          Array.from({ length: row.bytes / 4 }, (_, k) => row.byteOffset + 4 * k),
        );
        for (const place of places) {
          expect(place).toBeGreaterThanOrEqual(first);
          expect(place + 4).toBeLessThanOrEqual(first + bytes);
        }
        expect(places).toHaveLength(piece.elements);
        // Global indices are local ones here; both are row-major, as the values are read.
        const indices = product(piece.dims.map(({ runs }) => runs.flatMap(indicesOf)));
        seen.push(...indices.map((index, i) => [...index, places[i]!]));
      }
      const expected = product(extents.map((extent) => [...Array(extent).keys()])).map((index) => [
        ...index,
        byteOffset + index.reduce((sum, i, d) => sum + i * byteStrides[d]!, 0),
      ]);
      expect(seen.sort(byIndex)).toEqual(expected);
    }),
    { numRuns: 300 },
  );
});

it('keep to 32 MiB in a transposed storage of 8 GiB', () => {
  // [rows, columns] of which each column lies densely, as the weight of a linear layer that an engine keeps transposed.
  const [rows, columns] = [65_536, 32_768];
  const part = partOf([rows, columns], [4, 4 * rows], 0);
  const pieces = [...partPieces(part, 'f32')];
  expect(Math.max(...pieces.map((piece) => pieceRange(piece, 'f32', 0).bytes))).toBe(32 * 2 ** 20);
  expect(pieces.reduce((sum, { elements }) => sum + elements, 0)).toBe(rows * columns);
});

it('are none of an empty part', () => {
  expect([...partPieces(partOf([3, 0], [4, 12], 0), 'f32')]).toEqual([]);
});

function partOf(extents: readonly number[], byteStrides: readonly number[], byteOffset: number): Part {
  const dims = extents.map((length) => dimRuns(length === 0 ? [] : [{ start: 0, length }]));
  const parts = [{ dims, ranks: [0], byteStrides, byteOffset }];
  return sidePattern({ dtype: 'f32', shape: extents, parts }).parts[0]!;
}

function indicesOf({
  start,
  length,
  stride,
  count,
}: {
  readonly start: number;
  readonly length: number;
  readonly stride: number;
  readonly count: number;
}): number[] {
  return Array.from(
    { length: count * length },
    (_, k) => start + Math.floor(k / length) * stride + (k % length),
  );
}

function product(lists: readonly (readonly number[])[]): number[][] {
  return lists.reduce<number[][]>(
    (all, list) => all.flatMap((index) => list.map((i) => [...index, i])),
    [[]],
  );
}

function byIndex(a: readonly number[], b: readonly number[]): number {
  const d = a.findIndex((value, k) => value !== b[k]);
  return d < 0 ? 0 : a[d]! - b[d]!;
}
