// SPDX-License-Identifier: Apache-2.0
// Boxes hold exactly the elements of their part, each where the part has it.

import { blockCyclic, layout, mesh, type Split, shard } from '@nccl-ext/core';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { patternOf } from '../../plan/pattern-of-layout.js';
import { boxLoops, type ValueBox, valueBoxes } from './value-boxes.js';

const splits: readonly (Split | undefined)[] = [undefined, blockCyclic(1), blockCyclic(2), blockCyclic(3)];
const axis = fc.record({
  extent: fc.integer({ min: 1, max: 13 }),
  ranks: fc.constantFrom(1, 1, 2, 3),
  split: fc.constantFrom(...splits),
});

it('hold every element of a part once, at its place', () => {
  fc.assert(
    fc.property(fc.array(axis, { minLength: 1, maxLength: 4 }), fc.nat(3), (axes, gap) => {
      const shape = axes.map(({ extent }) => extent);
      const held = layout({
        shape,
        dtype: 'f32',
        mesh: mesh(Object.fromEntries(axes.map(({ ranks }, d) => [`axis${d}`, ranks]))),
        placements: axes.map(({ split }, d) => (split === undefined ? shard(d) : shard(d, split))),
      });
      const pattern = patternOf(held, {
        // Rows lie apart by `gap` elements, as inside a wider storage.
        byteStrides: (rank) => stridesOf(held.localShape(rank)!, gap),
      });
      for (const part of pattern.parts) {
        const rank = part.ranks[0]!;
        const local = held.localShape(rank)!;
        const expected = elementsOf(local).map((index) => [
          part.byteOffset + index.reduce((sum, i, d) => sum + i * part.byteStrides[d]!, 0),
          held.toGlobal(rank, index).reduce((sum, i, d) => sum * shape[d]! + i, 0),
        ]);
        const boxes = valueBoxes(part, shape, 'f32');
        expect(boxes.every(({ loops }) => loops.length <= boxLoops)).toBe(true);
        expect(boxes.flatMap(walk).sort(byPlace)).toEqual(expected.sort(byPlace));
      }
    }),
    { numRuns: 200 },
  );
});

it('are one where everything lies densely', () => {
  const held = layout({
    shape: [6, 8, 4],
    dtype: 'bf16',
    mesh: mesh({ tp: 2 }),
    placements: [shard(0)],
  });
  const [, second] = patternOf(held).parts;
  expect(valueBoxes(second!, [6, 8, 4], 'bf16')).toEqual([{ local: 0, element: 96, inner: 96, loops: [] }]);
});

function stridesOf(local: readonly number[], gap: number): number[] {
  const strides: number[] = [];
  let step = 4;
  for (let d = local.length - 1; d >= 0; d--) {
    strides[d] = step;
    step = step * local[d]! + (d === local.length - 1 ? 4 * gap : 0);
  }
  return strides;
}

/** Place and index of every element. */
function walk({ local, element, inner, loops }: ValueBox): number[][] {
  let starts = [[local, element]];
  for (const { count, local, element } of [...loops, { count: inner, local: 4, element: 1 }]) {
    starts = starts.flatMap(([place, index]) =>
      Array.from({ length: count }, (_, k) => [place! + k * local, index! + k * element]),
    );
  }
  return starts;
}

function elementsOf(extents: readonly number[]): number[][] {
  return extents.reduce<number[][]>(
    (all, extent) => all.flatMap((index) => Array.from({ length: extent }, (_, i) => [...index, i])),
    [[]],
  );
}

function byPlace(a: readonly number[], b: readonly number[]): number {
  return a[0]! - b[0]!;
}
