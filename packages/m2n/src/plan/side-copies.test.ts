// SPDX-License-Identifier: Apache-2.0
// Explicit boxes, overlapping holders, fused storages and tied weights: each place that wants an element gets it, from anyone who has it.

import { layout, mesh, NcclExtError, ranges, shard } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPlan } from './create-plan.js';
import { type HeldBox, patternOfBoxes } from './pattern-of-boxes.js';
import { patternOf } from './pattern-of-layout.js';
import type { SideCopy } from './plan-request.js';
import { layouts, topologies, worldSize } from './random-tensors.test-util.js';
import { checked, cluster } from './simulate-plan.test-util.js';

/** Boxes anywhere, one per rank at most, in storages with gaps and either order of dimensions. */
const boxes = (shape: readonly [number, number]): fc.Arbitrary<HeldBox[]> =>
  fc
    .uniqueArray(
      fc.record({
        rank: fc.nat(worldSize - 1),
        corners: fc.tuple(fc.nat(shape[0]), fc.nat(shape[0]), fc.nat(shape[1]), fc.nat(shape[1])),
        gap: fc.nat(3),
        byteOffset: fc.nat(5),
        transposed: fc.boolean(),
      }),
      { selector: ({ rank }) => rank, maxLength: 6 },
    )
    .map((list) =>
      list.map(({ rank, corners: [a, b, c, d], gap, byteOffset, transposed }) => {
        const start = [Math.min(a, b), Math.min(c, d)];
        const size = [Math.abs(a - b), Math.abs(c - d)];
        const byteStrides = transposed ? [1, size[0]! + gap] : [size[1]! + gap, 1];
        return { rank, start, size, byteOffset, byteStrides };
      }),
    );

const shape = [7, 6] as const;
const copies = (complete: boolean): fc.Arbitrary<SideCopy[]> =>
  fc
    .tuple(
      fc.array(boxes(shape), { minLength: 1, maxLength: 2 }),
      fc.array(layouts(shape, 'u8'), { minLength: complete ? 1 : 0, maxLength: 2 }),
      fc.boolean(),
    )
    .map(([manifests, parallel, repeated]) => {
      const list = [
        ...manifests.map((held) => patternOfBoxes({ dtype: 'u8', shape, boxes: held })),
        ...parallel.map((side) => patternOf(side)),
      ].map((pattern, i) => ({ pattern, storage: `copy${i}` }));
      return repeated ? [...list, list[0]!] : list;
    });

/** Whether some destination box has an element that no source box has. */
function uncovered(source: readonly SideCopy[], destination: readonly SideCopy[]): boolean {
  const held = (side: readonly SideCopy[]): Set<string> => {
    const out = new Set<string>();
    for (const { pattern } of side) {
      for (const { dims } of pattern.parts) {
        for (let row = 0; row < shape[0]; row++) {
          for (let column = 0; column < shape[1]; column++) {
            const inside = [row, column].every((at, d) =>
              dims[d]!.runs.some(({ start, length, stride, count }) => {
                const step = Math.floor((at - start) / stride);
                return at >= start && step < count && at - start - step * stride < length;
              }),
            );
            if (inside) out.add(`${row},${column}`);
          }
        }
      }
    }
    return out;
  };
  const have = held(source);
  return [...held(destination)].some((element) => !have.has(element));
}

describe('side copies', () => {
  it('serves any overlapping boxes and copies, or names what nobody has', () => {
    let [planned, refused] = [0, 0];
    fc.assert(
      fc.property(fc.boolean().chain(copies), copies(false), topologies, (source, destination, places) => {
        const request = {
          tensors: [{ name: 'w', source, destination }],
          worldSize,
          topology: places,
          cacheEntries: 0,
        };
        if (uncovered(source, destination)) {
          expect(() => createPlan(request)).toThrow(expect.objectContaining({ code: 'ERR_COVERAGE' }));
          refused++;
          return;
        }
        const { wireBytes, lowerBoundBytes, interDomainBytes } = checked(createPlan(request)).totals;
        if (places.domainOf(0) === places.domainOf(worldSize - 1)) expect(wireBytes).toBe(lowerBoundBytes);
        expect(wireBytes).toBeGreaterThanOrEqual(lowerBoundBytes);
        expect(wireBytes).toBeGreaterThanOrEqual(interDomainBytes);
        planned++;
      }),
      { numRuns: 400 },
    );
    expect(Math.min(planned, refused)).toBeGreaterThan(40);
  });

  it('lets all holders of overlapping ranges serve', () => {
    // Two KV heads on four ranks: two holders each.
    const source = layout({
      shape: [2048, 512],
      dtype: 'u8',
      mesh: mesh({ tp: 4 }),
      placements: {
        tp: shard(
          0,
          ranges([
            [0, 1024],
            [0, 1024],
            [1024, 2048],
            [1024, 2048],
          ]),
        ),
      },
    });
    const destination = layout({
      shape: [2048, 512],
      dtype: 'u8',
      mesh: mesh({ dp: 2 }, { startRank: 4 }),
      placements: {},
    });
    const plan = checked(createPlan({ tensors: [{ name: 'k', source, destination }], cacheEntries: 0 }));
    expect(plan.totals.maxRankBytes).toBe(plan.totals.meanRankBytes);
  });

  it('reads and writes parts of fused storages', () => {
    const side = (startRank: number, tp: number) => {
      const at = (rows: number) =>
        layout({
          shape: [rows, 4],
          dtype: 'bf16',
          mesh: mesh({ tp }, { startRank }),
          placements: { tp: shard(0) },
        });
      const q = at(16);
      const k = at(8);
      return [
        ['q', { pattern: patternOf(q), storage: 'qkv' }],
        ['k', { pattern: patternOf(k, { byteOffset: (rank) => q.localBytes(rank) }), storage: 'qkv' }],
      ] as const;
    };
    const from = side(0, 4);
    const to = side(4, 2);
    const tensors = from.map(([name, copy], i) => ({ name, source: [copy], destination: [to[i]![1]] }));
    const plan = checked(createPlan({ tensors, cacheEntries: 0 }));
    expect(
      plan.destinationTensorsOf(4).map(({ storage, requiredBytes }) => [storage, requiredBytes]),
    ).toEqual([
      ['qkv', 64],
      ['qkv', 96],
    ]);
  });

  const tiedPlan = (topology = cluster(4, 4, 4)) => {
    const at = (rank: number, storage: string): SideCopy => ({
      pattern: patternOf(
        layout({ shape: [256], dtype: 'u8', mesh: mesh({}, { startRank: rank }), placements: {} }),
      ),
      storage,
    });
    return createPlan({
      tensors: [
        {
          name: 'embed',
          source: [at(0, 'embed'), at(1, 'head')],
          destination: [at(2, 'embed'), at(2, 'head'), at(3, 'head'), at(3, 'head')],
        },
      ],
      topology,
      cacheEntries: 0,
    });
  };

  it('sends a tied weight once to a rank that keeps it twice, from both stages that have it', () => {
    const plan = checked(tiedPlan());
    expect(plan.totals.wireBytes).toBe(2 * 256);
    expect(plan.totals.maxRankBytes).toBe(256);
    expect(plan.totals.localBytes).toBe(256);
    expect(plan.tensors.map(({ slot }) => slot)).toEqual([0, 1]);
    const { sends } = plan.program(2);
    expect([sends.stage[0], sends.peer[0], sends.tensor[0], sends.sourceTensor[0]]).toEqual([1, 2, 1, 0]);
    expect(plan.destinationTensorsOf(3).map(({ storage, tensor }) => [storage, tensor])).toEqual([
      ['head', 0],
    ]);
  });

  it('forwards a second time what a rank keeps twice and did not receive itself', () => {
    const { totals } = checked(tiedPlan(cluster(4, 2, 2)));
    expect(totals.interDomainBytes).toBe(256);
    expect(totals.wireBytes).toBeGreaterThanOrEqual(2 * 256);
  });

  it('refuses sides without a copy and copies that differ', () => {
    const one = (dtype: 'u8' | 'f32', length: number, storage = 'a'): SideCopy => ({
      pattern: patternOf(layout({ shape: [length], dtype, mesh: mesh({}), placements: {} })),
      storage,
    });
    const codeOf = (source: SideCopy[]): string => {
      try {
        createPlan({ tensors: [{ name: 'w', source, destination: [one('u8', 4)] }] });
        return 'none';
      } catch (error) {
        return NcclExtError.is(error) ? error.code : String(error);
      }
    };
    expect(codeOf([])).toBe('ERR_INVALID_ARGUMENT');
    expect(codeOf([one('u8', 4), one('u8', 5, 'b')])).toBe('ERR_SHAPE_MISMATCH');
    expect(codeOf([one('u8', 4), one('f32', 4, 'b')])).toBe('ERR_CAST');
    expect(codeOf([one('u8', 4), one('u8', 4)])).toBe('none');
  });
});
