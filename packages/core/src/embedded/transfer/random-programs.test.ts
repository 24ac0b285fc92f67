// SPDX-License-Identifier: Apache-2.0
// Random strided programs on any number of ranks and workers, with kernels and without, against a naive copy.

import fc from 'fast-check';
import { describe, it } from 'vitest';
import { assembleBackend } from '../assemble-backend.js';
import { inWorld, type TestMove } from '../harness.test-util.js';
import { BackendState } from '../host/state.js';
import { WorkerPool } from '../host/worker-pool.js';
import { Arena } from '../memory/arena.js';
import { bufferBytes, runTransfer } from './run-transfer.test-util.js';

/** Moves whose destinations never overlap: the destination buffer is cut in equal parts, one per (sender, index). */
function randomMoves(ranks: number): fc.Arbitrary<TestMove[]> {
  const perSender = 2;
  const part = Math.floor(bufferBytes / (ranks * perSender));
  const shape = fc.record({
    inner: fc.integer({ min: 1, max: 9 }),
    counts: fc.tuple(
      fc.integer({ min: 1, max: 2 }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 4 }),
    ),
    gap: fc.integer({ min: 0, max: 2 }),
    sourceGap: fc.integer({ min: 0, max: 3 }),
    source: fc.integer({ min: 0, max: 64 }),
    present: fc.integer({ min: 0, max: 3 }),
  });
  return fc
    .array(shape, { minLength: ranks * ranks * perSender, maxLength: ranks * ranks * perSender })
    .map((shapes) =>
      shapes.flatMap(({ inner, counts, gap, sourceGap, source, present }, index): TestMove[] => {
        if (present === 0) return [];
        const from = Math.floor(index / perSender) % ranks;
        const to = Math.floor(index / (ranks * perSender));
        const d2 = inner + gap;
        const d1 = d2 * counts[2];
        const d0 = d1 * counts[1];
        const s2 = inner + sourceGap;
        const s1 = s2 * counts[2] + sourceGap;
        const s0 = s1 * counts[1];
        if (d0 * counts[0] > part) return [];
        const destination = (from * perSender + (index % perSender)) * part;
        return [
          {
            from,
            to,
            inner,
            counts,
            source,
            destination,
            sourceStrides: [s0, s1, s2],
            destinationStrides: [d0, d1, d2],
          },
        ];
      }),
    );
}

describe('random programs', () => {
  it.each([
    [1, 1],
    [2, 1],
    [3, 2],
    [8, 8],
    [16, 1],
    [16, 2],
    [16, 8],
  ])('%i ranks, %i workers', async (ranks, workers) => {
    await inWorld(ranks, { workers }, async (world) => {
      await fc.assert(
        fc.asyncProperty(randomMoves(ranks), fc.boolean(), (moves, verify) =>
          runTransfer(world, moves, verify, 2),
        ),
        { numRuns: ranks > 8 ? 4 : 15 },
      );
    });
  });

  it('in plain blocks, without kernels', async () => {
    const arena = new Arena({ kernels: false, limit: 2 ** 32 });
    const backend = assembleBackend(new BackendState(arena, new WorkerPool(arena)));
    await inWorld(4, { workers: 2, backend }, async (world) => {
      await fc.assert(
        fc.asyncProperty(randomMoves(4), fc.boolean(), (moves, verify) => runTransfer(world, moves, verify)),
        { numRuns: 20 },
      );
    });
  });
});
