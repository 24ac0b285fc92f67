// SPDX-License-Identifier: Apache-2.0
// Runs of a layout stay few, however large the tensor and however its splits nest.

import { describe, expect, it } from 'vitest';
import { mesh } from '../mesh/device-mesh.js';
import { layout } from './layout.js';
import { blockCyclic, interleaved, type Split, shard, strided } from './placement.js';

describe('folding', () => {
  const runCounts = (extent: number, splits: readonly Split[]): number => {
    const axes = Object.fromEntries(splits.map((_, i) => [`a${i}`, 4]));
    const subject = layout({
      shape: [extent],
      dtype: 'u8',
      mesh: mesh(axes),
      placements: splits.map((s) => shard(0, s)),
    });
    return Math.max(...subject.dims[0]!.runs.map(({ runs }) => runs.length));
  };

  it.each<[string, number, readonly Split[], number]>([
    ['block-cyclic over a million', 1_000_000, [blockCyclic(1)], 1],
    ['block-cyclic with a ragged end', 1_000_003, [blockCyclic(64)], 2],
    ['strided', 1_000_000, [strided(1000)], 1],
    ['strided in strided', 2 ** 20, [strided(64), strided(64)], 1],
    ['nested block-cyclic', 2 ** 40, [blockCyclic(64), blockCyclic(16)], 1],
    ['chunk in block-cyclic', 2 ** 40, [blockCyclic(64), { kind: 'chunk' }], 1],
    ['block-cyclic in chunk', 2 ** 40 + 1, [{ kind: 'chunk' }, blockCyclic(64)], 3],
    ['block-cyclic in strided', 2 ** 40, [strided(4), blockCyclic(64)], 4],
    ['fused qkv', 2 ** 40, [interleaved([2 ** 39, 2 ** 38, 2 ** 38])], 3],
  ])('keeps %s short', (_, extent, splits, most) => {
    expect(runCounts(extent, splits)).toBeLessThanOrEqual(most);
  });
});
