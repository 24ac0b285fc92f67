// SPDX-License-Identifier: Apache-2.0
// A cut of runs holds the same elements as a cut of the list of elements.

import { blockCyclic, type DimRuns, layout, localToGlobal, mesh, shard } from '@nccl-ext/core';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { subRuns } from './sub-runs.js';

it('holds exactly the elements of the range', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 7 }),
      fc.nat(59),
      fc.nat(60),
      (extent, ranks, block, a, b) => {
        const held = layout({
          shape: [extent],
          dtype: 'u8',
          mesh: mesh({ tp: ranks }),
          placements: [shard(0, blockCyclic(block))],
        });
        for (const rank of held.mesh.ranks) {
          const dim = held.runs(rank)![0]!;
          const [from, to] = [Math.min(a, b, dim.extent), Math.min(Math.max(a, b), dim.extent)];
          expect(elements(subRuns(dim, from, to))).toEqual(elements(dim).slice(from, to));
        }
      },
    ),
  );
});

function elements(dim: DimRuns): number[] {
  return Array.from({ length: dim.extent }, (_, local) => localToGlobal(dim, local));
}
