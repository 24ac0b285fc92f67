// SPDX-License-Identifier: Apache-2.0
// Explanations add up to the programs, and predicted times follow from bytes and links by hand.

import { layout, linkClasses, mesh, presetTopology, shard } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPlan } from '../create-plan.js';
import { tensors, topologies, worldSize } from '../random-tensors.test-util.js';
import { trafficIndex } from './traffic.js';

const at = (axes: Record<string, number>, startRank: number, dtype: 'f32' | 'bf16' = 'f32') =>
  layout({
    shape: [1024, 1024],
    dtype,
    mesh: mesh(axes, { startRank }),
    placements: axes.tp ? { tp: shard(0) } : {},
  });

describe('explain', () => {
  it('agrees with the totals for any plan, and no plan beats the lower bound', () => {
    fc.assert(
      fc.property(tensors('a'), tensors('b'), topologies, (a, b, topology) => {
        const plan = createPlan({ tensors: [a, b], worldSize, topology, cacheEntries: 0 });
        const { matrix, prediction, topSenders, topReceivers } = plan.explain();
        const sum = matrix.flat().reduce((total, bytes) => total + bytes, 0);
        expect(sum).toBe(plan.totals.wireBytes + plan.totals.localBytes);
        expect(matrix.reduce((total, row, rank) => total + row[rank]!, 0)).toBe(plan.totals.localBytes);
        const all = (list: typeof topSenders) => list.reduce((total, { bytes }) => total + bytes, 0);
        if (topSenders.length < 10) expect(all(topSenders)).toBe(plan.totals.wireBytes);
        if (topReceivers.length < 10) expect(all(topReceivers)).toBe(plan.totals.wireBytes);
        expect(prediction.lowerBoundSeconds).toBeLessThanOrEqual(prediction.seconds);
        expect(prediction.gap).toBeGreaterThanOrEqual(1);
      }),
      { numRuns: 150 },
    );
  });

  it('predicts a transfer between two nodes from its busiest port', () => {
    const plan = createPlan({
      tensors: [{ name: 'w', source: at({ tp: 8 }, 0), destination: at({ dp: 2, tp: 4 }, 8) }],
      topology: presetTopology('dgx-h100', 16),
    });
    const { prediction, casts, largestTensors } = plan.explain();
    // Each receiver takes half of its 1 MiB shard from the NIC and the other half from its replica.
    const half = 512 * 1024;
    expect(plan.totals.bytesByLink.nvlink).toBe(8 * half);
    expect(prediction.bottleneck).toMatchObject({ bytes: half, seconds: half / 50e9 });
    expect(prediction.seconds).toBeCloseTo(half / 50e9 + 8e-6 + half / 450e9 + 2e-6, 12);
    expect(prediction.lowerBoundSeconds).toBeCloseTo((8 * half) / (8 * 50e9), 12);
    expect(casts).toEqual([]);
    expect(largestTensors).toEqual([{ name: 'w', bytes: 4 * 2 ** 20, sourceRanks: 8, destinationRanks: 8 }]);
  });

  it('lists casts and says all of it in words', () => {
    const plan = createPlan({
      tensors: [{ name: 'w', source: at({ dp: 2 }, 0), destination: at({ dp: 3 }, 2, 'bf16') }],
    });
    const explanation = plan.explain();
    expect(explanation.casts).toEqual([{ from: 'f32', to: 'bf16', tensors: 1, bytes: 3 * 2 * 2 ** 20 }]);
    expect(explanation.topSenders.map(({ rank }) => rank)).toEqual([0, 1]);
    const text = explanation.toString();
    expect(text).toContain('wire            6.29 MB, the lower bound');
    expect(text).toContain('limited by      rank 0, which sends 3.15 MB over nvlink');
    expect(text).toContain('casts           1 tensors from f32 to bf16, 6.29 MB');
    expect(JSON.parse(JSON.stringify(explanation)).totals.wireBytes).toBe(6 * 2 ** 20);
    expect(plan.explain()).toBe(explanation);
  });

  it('sums ranks into at most 64 rows', () => {
    const plan = createPlan({
      tensors: [{ name: 'w', source: at({ tp: 128 }, 0), destination: at({ tp: 64 }, 128) }],
    });
    const { matrix, ranksPerRow } = plan.explain();
    expect([matrix.length, ranksPerRow]).toEqual([64, 3]);
    expect(matrix.flat().reduce((sum, bytes) => sum + bytes, 0)).toBe(plan.totals.wireBytes);
  });

  it('explains that nothing moves', () => {
    const { prediction, topSenders } = createPlan({ tensors: [] }).explain();
    expect(prediction).toEqual({ seconds: 0, lowerBoundSeconds: 0, gap: 1, bottleneck: undefined });
    expect(topSenders).toEqual([]);
  });
});

describe('trafficIndex', () => {
  it('is a different place for every stage, rank and link', () => {
    const places = [0, 1].flatMap((stage) =>
      [0, 1, 2].flatMap((rank) => linkClasses.map((_, link) => trafficIndex(stage, rank, link, 3))),
    );
    expect(new Set(places).size).toBe(2 * 3 * linkClasses.length);
    expect(Math.max(...places)).toBe(places.length - 1);
  });
});
