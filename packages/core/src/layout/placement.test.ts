// SPDX-License-Identifier: Apache-2.0
// Placements and splits are frozen copies, and malformed ones are refused where they are written.

import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import {
  blockCyclic,
  interleaved,
  normaliseSplit,
  ranges,
  replicate,
  type Split,
  shard,
  sizes,
  strided,
} from './placement.js';

describe('placements', () => {
  it('chunk unless told otherwise', () => {
    expect(shard(1)).toEqual({ kind: 'shard', dim: 1, split: { kind: 'chunk' } });
    expect(shard(1, 'chunk')).toEqual(shard(1));
    expect(shard(-1, 'even')).toEqual({ kind: 'shard', dim: -1, split: { kind: 'even' } });
    expect(replicate()).toEqual({ kind: 'replicate' });
  });

  it('carry their splits', () => {
    expect(shard(0, sizes([5, 0])).kind).toBe('shard');
    expect(sizes([5, 0])).toEqual({ kind: 'sizes', sizes: [5, 0] });
    expect(
      ranges([
        [0, 4],
        [0, 4],
      ]),
    ).toEqual({
      kind: 'ranges',
      ranges: [
        [0, 4],
        [0, 4],
      ],
    });
    expect(strided(2)).toEqual({ kind: 'strided', groups: 2 });
    expect(interleaved([8, 2, 2])).toEqual({ kind: 'interleaved', segments: [8, 2, 2] });
    expect(blockCyclic(64)).toEqual({ kind: 'blockCyclic', block: 64 });
  });

  it('do not see later changes of their arguments', () => {
    const list = [1, 2];
    const range: [number, number] = [0, 1];
    const split = sizes(list);
    const other = ranges([range]);
    list[0] = 9;
    range[1] = 9;
    expect(split).toEqual({ kind: 'sizes', sizes: [1, 2] });
    expect(other).toEqual({ kind: 'ranges', ranges: [[0, 1]] });
    expect(Object.isFrozen(split) && Object.isFrozen(shard(0, split))).toBe(true);
  });

  it('check a split once', () => {
    const split = sizes([1, 2]);
    expect(normaliseSplit(split, 'split')).toBe(split);
    const plain: Split = { kind: 'sizes', sizes: [1, 2] };
    expect(normaliseSplit(plain, 'split')).not.toBe(plain);
  });

  it.each<[string, () => unknown, RegExp]>([
    ['a fractional dim', () => shard(0.5), /^dim must be an integer .* got 0\.5/],
    ['dim NaN', () => shard(Number.NaN), /^dim .* got NaN/],
    [
      'an unknown split',
      () => shard(0, 'rows' as never),
      /^split must be one of even, chunk, sizes, .* got "rows"/,
    ],
    [
      'an unknown kind',
      () => shard(0, { kind: 'rows' } as never),
      /^split\.kind must be one of .* got "rows"/,
    ],
    ['no split', () => shard(0, null as never), /^split must be one of .* got null/],
    [
      'a negative size',
      () => sizes([3, -1]),
      /^split\.sizes\[1\] must be an integer of at least 0 .* got -1/,
    ],
    ['a hole in sizes', () => sizes(Array(2) as never), /^split\.sizes\[0\] .* got undefined/],
    ['sizes no array', () => sizes(3 as never), /^split\.sizes must be an array, got 3/],
    ['an unsafe size', () => sizes([2 ** 53]), /^split\.sizes\[0\]/],
    [
      'a range backwards',
      () => ranges([[4, 2]]),
      /^split\.ranges\[0\] must not end before it starts: \[4, 2\)/,
    ],
    [
      'a range of three',
      () => ranges([[0, 1, 2] as never]),
      /^split\.ranges\[0\] must be \[start, end\], got 3/,
    ],
    ['a range of one number', () => ranges([4 as never]), /^split\.ranges\[0\] must be an array, got 4/],
    ['a negative start', () => ranges([[-1, 2]]), /^split\.ranges\[0\]\[0\] \(start\) .* got -1/],
    ['groups 0', () => strided(0), /^split\.groups must be an integer of at least 1 .* got 0/],
    ['a negative segment', () => interleaved([-8]), /^split\.segments\[0\] .* got -8/],
    ['block 0', () => blockCyclic(0), /^split\.block must be an integer of at least 1 .* got 0/],
    ['block 1.5', () => blockCyclic(1.5), /^split\.block .* got 1\.5/],
  ])('refuse %s', (_, run, message) => {
    expect(run).toThrow(message);
    expect(run).toThrow(NcclExtError);
    try {
      run();
    } catch (error) {
      expect(NcclExtError.is(error, 'ERR_LAYOUT')).toBe(true);
    }
  });
});
