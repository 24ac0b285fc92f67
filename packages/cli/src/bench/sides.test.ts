// SPDX-License-Identifier: Apache-2.0
// Sources and destinations are on different GPUs wherever there are several, and the bound counts what leaves or enters a GPU.

import { createPlan } from '@nccl-ext/m2n';
import { describe, expect, it } from 'vitest';
import { busiestLinkBytes } from './link-bytes.js';
import { deviceRows, stepRow } from './m2n-rows.js';
import { nominalLinkRate } from './nominal-link.js';
import { pairsOf } from './peer-copies.js';
import { sidesOf, spreadRanks } from './sides.js';

describe('sides', () => {
  it('are halves of the ranks on one GPU, and halves of the GPUs otherwise', () => {
    expect(sidesOf(['a', 'a', 'a', 'a'])).toEqual({ sources: [0, 1], destinations: [2, 3] });
    expect(sidesOf(['a', 'b', 'a', 'b'])).toEqual({ sources: [0, 2], destinations: [1, 3] });
    expect(sidesOf(['b', 'a', 'd', 'c'])).toEqual({ sources: [0, 1], destinations: [2, 3] });
  });

  it.each([
    [8, 1, [0, 0, 0, 0, 0, 0, 0, 0]],
    [8, 2, [0, 0, 0, 0, 1, 1, 1, 1]],
    [8, 3, [0, 0, 0, 0, 1, 1, 1, 1]],
    [2, 8, [0, 1]],
    [8, 4, [0, 0, 1, 1, 2, 2, 3, 3]],
  ])('spread %i ranks over %i GPUs', (ranks, gpus, places) => {
    expect(spreadRanks(ranks, gpus)).toEqual(places);
  });

  it('pair GPUs without sharing one', () => {
    const gpus = ['a', 'b', 'c', 'd', 'a', 'b', 'c', 'd'];
    expect(pairsOf(gpus, sidesOf(gpus))).toEqual([
      { from: 0, to: 2 },
      { from: 1, to: 3 },
    ]);
    expect(pairsOf(['a', 'a'], sidesOf(['a', 'a']))).toEqual([]);
  });
});

describe('the busiest link', () => {
  it('is a GPU that sends or one that receives, whichever has more; what stays on a GPU does not count', () => {
    const matrix = [
      [0, 5, 7, 0],
      [0, 0, 1, 0],
      [0, 0, 0, 0],
      [0, 0, 9, 0],
    ];
    expect(busiestLinkBytes(matrix, ['a', 'a', 'b', 'b'])).toBe(8);
    expect(busiestLinkBytes(matrix, ['a', 'b', 'c', 'd'])).toBe(17);
    expect(busiestLinkBytes(matrix, ['a', 'a', 'a', 'a'])).toBe(0);
  });

  it.each([
    [2, 2, 1],
    [8, 2, 1],
    [4, 4, 2],
    [8, 8, 4],
  ])('carries an equal part of each row: %i ranks on %i GPUs, %i of them sources', (ranks, gpus, halves) => {
    const places = spreadRanks(ranks, gpus).map(String);
    const bytes = 2 ** 24;
    for (const { name, source, destination } of deviceRows(sidesOf(places), bytes)) {
      const plan = createPlan({ worldSize: ranks, tensors: [{ name, source, destination }] });
      const copies = name.includes('replicas') ? 2 : 1;
      expect(busiestLinkBytes(plan.explain().matrix, places)).toBe((bytes * copies) / halves);
    }
  });
});

it('makes steps of fewer bytes than ranks', () => {
  const { source, destination } = stepRow(sidesOf(Array.from({ length: 32 }, () => 'a')), 8);
  expect([source.bytes, destination.bytes]).toEqual([8, 8]);
});

it.each([
  ['NVIDIA H200', 450],
  ['NVIDIA H100 80GB HBM3', 450],
  ['NVIDIA H100 PCIe', undefined],
  ['NVIDIA B200', 900],
  ['NVIDIA L4', undefined],
])('knows the links of %s', (name, rate) => {
  expect(nominalLinkRate(name)).toBe(rate);
});
