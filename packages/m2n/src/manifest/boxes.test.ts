// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { meet, uncovered } from './boxes.js';
import type { ManifestBox } from './manifest-schema.js';
import { endOf, isInjective, overlaps, type StridedTensor } from './strided-bytes.js';

const boxOf = (dimensions: number) =>
  fc.record({
    start: fc.array(fc.nat(4), { minLength: dimensions, maxLength: dimensions }),
    size: fc.array(fc.nat(4), { minLength: dimensions, maxLength: dimensions }),
  });

/** The elements of a box, as text. */
function elementsOf({ start, size }: ManifestBox): Set<string> {
  let list: number[][] = [[]];
  for (const [d, from] of start.entries()) {
    list = list.flatMap((front) => Array.from({ length: size[d]! }, (_, i) => [...front, from + i]));
  }
  return new Set(list.map(String));
}

it('meet and uncovered agree with sets of elements', () => {
  const scenario = fc
    .integer({ min: 0, max: 3 })
    .chain((d) => fc.tuple(boxOf(d), fc.array(boxOf(d), { maxLength: 5 })));
  fc.assert(
    fc.property(scenario, ([box, others]) => {
      const wanted = elementsOf(box);
      const held = new Set(others.flatMap((other) => [...elementsOf(other)]));
      for (const other of others) {
        expect(meet(box, other)).toBe([...elementsOf(other)].some((element) => wanted.has(element)));
      }
      const missing = uncovered(box, others);
      expect(missing === undefined).toBe([...wanted].every((element) => held.has(element)));
      for (const element of missing === undefined ? [] : elementsOf(missing)) {
        expect(wanted.has(element) && !held.has(element)).toBe(true);
      }
    }),
    { numRuns: 500 },
  );
});

const strided: fc.Arbitrary<StridedTensor> = fc
  .record({
    offset: fc.nat(12),
    dims: fc.array(fc.tuple(fc.nat(3), fc.nat(9)), { maxLength: 3 }),
    elementBytes: fc.constantFrom(1, 2, 4),
  })
  .map(({ offset, dims, elementBytes }) => ({
    offset,
    shape: dims.map(([extent]) => extent),
    strides: dims.map(([, stride]) => stride),
    elementBytes,
  }));

/** Every byte of every element, repeats included. */
function bytesOf({ offset, shape, strides, elementBytes }: StridedTensor): number[] {
  let starts = [offset];
  for (const [d, extent] of shape.entries()) {
    starts = starts.flatMap((start) => Array.from({ length: extent }, (_, i) => start + i * strides[d]!));
  }
  return starts.flatMap((start) => Array.from({ length: elementBytes }, (_, i) => start + i));
}

it('strided tensors occupy the bytes that their elements have', () => {
  fc.assert(
    fc.property(strided, strided, (a, b) => {
      const [bytesA, bytesB] = [bytesOf(a), bytesOf(b)];
      expect(endOf(a)).toBe(bytesA.length === 0 ? a.offset : Math.max(...bytesA) + 1);
      // Sufficient for distinct bytes, and necessary for the tensors that programs make.
      if (isInjective(a)) expect(new Set(bytesA).size).toBe(bytesA.length);
      if (isInjective(a) && isInjective(b)) {
        expect(overlaps(a, b)).toBe(bytesA.some((byte) => bytesB.includes(byte)));
      }
    }),
    { numRuns: 1000 },
  );
});
