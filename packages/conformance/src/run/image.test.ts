// SPDX-License-Identifier: Apache-2.0
// Images and the comparison with them: guards around every tensor, and a sentence for the first byte that differs.

import { shard } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import type { TensorSpec } from '../cases/case.js';
import { line } from '../cases/side.js';
import { findDifference } from './find-difference.js';
import { guardBytes, imageOf, renderImage } from './image.js';

const tensors: readonly TensorSpec[] = [
  {
    shape: [6, 5],
    dtype: 'i16',
    source: line(2, shard(0)),
    destination: line(2, shard(1), 2),
    destinationStored: { offset: 3 },
  },
  { shape: [9], dtype: 'u8', source: line(2, shard(0)), destination: line(2, shard(0), 2) },
];
const content = { epoch: 1, pass: 0, guard: 0xde };

function rendered(rank: number): { image: ReturnType<typeof imageOf>; bytes: Uint8Array } {
  const image = imageOf(tensors, 'destination', rank);
  const bytes = new Uint8Array(image.bytes);
  renderImage(bytes, image, 0, content);
  return { image, bytes };
}

describe('images', () => {
  it('guard both sides of every tensor', () => {
    const { image, bytes } = rendered(2);
    const [first, second] = image.slots;
    expect(first!.byteOffset % 16).toBe(6);
    expect(first!.byteOffset).toBeGreaterThanOrEqual(guardBytes);
    expect(second!.byteOffset - (first!.byteOffset + first!.bytes)).toBeGreaterThanOrEqual(guardBytes);
    expect(image.bytes - (second!.byteOffset + second!.bytes)).toBeGreaterThanOrEqual(guardBytes);
    expect(new Set(bytes.subarray(0, first!.byteOffset))).toEqual(new Set([0xde]));
  });

  it('are empty where a rank holds nothing', () => {
    expect(imageOf(tensors, 'destination', 0)).toMatchObject({ bytes: 0, slots: [] });
  });

  it('render in pieces as they do whole', () => {
    const { image, bytes } = rendered(3);
    for (let from = 0; from < image.bytes; from += 24) {
      const piece = new Uint8Array(Math.min(24, image.bytes - from));
      renderImage(piece, image, from, content);
      expect(piece).toEqual(bytes.slice(from, from + piece.length));
    }
  });
});

describe('a difference', () => {
  it('is not there when nothing differs', () => {
    const { image, bytes } = rendered(2);
    expect(findDifference(image, 0, bytes, bytes.slice())).toBeUndefined();
  });

  it('names rank, tensor, global index, both values and how many differ', () => {
    const { image, bytes } = rendered(3);
    const seen = bytes.slice();
    // Columns 3 and 4 are on rank 3: local element 5 is [2, 4].
    const at = image.slots[0]!.byteOffset + 2 * 5;
    const value = seen[at]! | (seen[at + 1]! << 8);
    seen[at + 1]! ^= 0x80;
    seen[at + 4]! ^= 1;
    const text = findDifference(image, 0, bytes, seen);
    expect(text).toContain('rank 3, destination, tensor 0 (i16): element [2, 4]');
    expect(text).toContain(`expected 0x${value.toString(16).padStart(4, '0')}`);
    expect(text).toContain(`is 0x${(value ^ 0x8000).toString(16).padStart(4, '0')}`);
    expect(text).toContain('2 of 12 elements differ');
  });

  it('in a guard names the tensors beside it', () => {
    const { image, bytes } = rendered(2);
    const [first, second] = image.slots;
    const between = bytes.slice();
    between[first!.byteOffset + first!.bytes]! ^= 1;
    expect(findDifference(image, 0, bytes, between)).toContain('behind tensor 0 and before tensor 1');
    const before = bytes.slice();
    before[first!.byteOffset - 1]! ^= 1;
    expect(findDifference(image, 0, bytes, before)).toContain('the guard before tensor 0');
    const behind = bytes.slice();
    behind[second!.byteOffset + second!.bytes]! ^= 1;
    expect(findDifference(image, 0, bytes, behind)).toContain('the guard behind tensor 1');
  });
});
