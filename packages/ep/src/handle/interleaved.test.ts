// SPDX-License-Identifier: Apache-2.0
// Any handles in any interleaving, on any number of workers, late ranks included: every combine equals the written-out sum.

import { type Communicator, localWorld, type Stream } from '@nccl-ext/core';
import { type EpLayout, epLayouts } from '@nccl-ext/core/contract';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expertMapOf } from '../config/expert-map.js';
import { createEpGroup } from '../group/create-ep-group.js';
import type { EpGroup } from '../group/ep-group.js';
import { allocateLayerBuffers } from '../layer/layer-buffers.js';
import { type Batch, randomBatches } from '../oracle/batches.test-util.js';
import { expectedSum } from '../oracle/expected-combine.test-util.js';
import { expectedRows } from '../oracle/expected-rows.test-util.js';
import { poisoned, upload, valuesOf } from '../oracle/on-device.test-util.js';
import type { EpHandle } from './ep-handle.js';

const dtype = 'bf16';
const scenario = fc.record({
  ranks: fc.integer({ min: 1, max: 4 }),
  experts: fc.integer({ min: 1, max: 9 }),
  k: fc.integer({ min: 1, max: 4 }),
  hidden: fc.constantFrom(8, 24, 136),
  most: fc.integer({ min: 1, max: 5 }),
  layouts: fc.array(fc.constantFrom(...epLayouts), { minLength: 1, maxLength: 3 }),
  sizes: fc.array(fc.nat(5), { minLength: 4, maxLength: 4 }),
  order: fc.array(fc.nat(2), { minLength: 9, maxLength: 9 }),
  seed: fc.nat(),
  late: fc.integer({ min: -1, max: 3 }),
});

/** One handle of a rank, its batch, and the steps that are left. */
function open(
  comm: Communicator,
  group: EpGroup,
  layout: EpLayout,
  topK: number,
  hidden: number,
  batch: Batch,
) {
  const handle = group.createHandle({ layout }) as unknown as EpHandle;
  const { topkIdx, tokens, weights } = upload(comm, dtype, topK, hidden, batch);
  const y = poisoned(comm, dtype, [batch.ids.length, hidden]);
  const buffers = allocateLayerBuffers(handle);
  const { rows } = buffers;
  const out = {
    tokens: rows,
    topkIdx: buffers.topkIdx,
    topkWeights: buffers.topkWeights,
    expertCounts: layout === 'expert-major' ? buffers.expertCounts : undefined,
  };
  const steps = [
    (stream: Stream) => handle.route(topkIdx, { stream }),
    (stream: Stream) => handle.dispatch(tokens, { stream, weights, out } as never),
    (stream: Stream) => handle.combine(rows, { stream, out: { tokens: y } } as never),
  ];
  return { steps, y };
}

/** Three steps of each of `handles` handles, as far as possible as `order` wishes; the same on every rank. */
function interleaving(handles: number, order: readonly number[]): number[] {
  const all = Array.from({ length: 3 * handles }, (_, i) => i % handles);
  const left: number[] = Array(handles).fill(3);
  return [...order.map((wish) => wish % handles), ...all].filter((i) => left[i]!-- > 0);
}

describe.each([1, 2, 8])('%i workers', (workers) => {
  it('equals the written-out sums', async () => {
    await fc.assert(
      fc.asyncProperty(
        scenario,
        async ({ ranks, experts, k, hidden, most, layouts, order, seed, late, ...rest }) => {
          const topK = Math.min(k, experts);
          const sizes = rest.sizes.slice(0, ranks).map((size) => Math.min(size, most));
          const map = expertMapOf(experts, ranks);
          const batches = layouts.map((_, i) =>
            randomBatches(sizes, { experts, topK, hidden, dtype }, seed + i),
          );
          const world = await localWorld({ ranks, backend: 'embedded', workers, timeoutMs: 10_000 });
          try {
            if (late >= 0 && late < ranks) world.faults.delay(late, 2);
            const results = await world.run(async (comm) => {
              const group = await createEpGroup(comm, {
                experts,
                topK,
                hidden,
                dtype,
                maxTokensPerRank: most,
              });
              const parts = layouts.map((layout, i) =>
                open(comm, group, layout, topK, hidden, batches[i]![comm.rank]!),
              );
              const stream = comm.createStream();
              for (const i of interleaving(layouts.length, order)) parts[i]!.steps.shift()!(stream);
              await stream.synchronize();
              return parts.map(({ y }) => valuesOf(y));
            });
            for (const [i, layout] of layouts.entries()) {
              const byRank = sizes.map((_, rank) => expectedRows(map, layout, batches[i]!, rank, { most }));
              const tokenAt = (rank: number, at: number, h: number): number => {
                const { source, token } = byRank[rank]!.rows.find((row) => row.at === at)!;
                return batches[i]![source]!.tokens[token]![h]!;
              };
              for (const [source, values] of results.entries()) {
                const weighted = layout === 'expert-major';
                const expected = batches[i]![source]!.ids.flatMap((_, token) =>
                  Array.from({ length: hidden }, (_, h) =>
                    expectedSum(byRank, source, token, (rank, at) => tokenAt(rank, at, h), {
                      dtype,
                      weighted,
                    }),
                  ),
                );
                expect(values[i]).toEqual(expected);
              }
            }
          } finally {
            await world.dispose();
          }
        },
      ),
      { numRuns: 12 },
    );
  }, 60_000);
});
