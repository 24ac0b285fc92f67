// SPDX-License-Identifier: Apache-2.0
// A forward pass in every layout equals what its rules say, row by row and bit by bit.

import { localWorld } from '@nccl-ext/core';
import { type EpLayout, epLayouts } from '@nccl-ext/core/contract';
import { describe, expect, it } from 'vitest';
import type { EpConfig } from '../config/ep-config.js';
import { expertMapOf } from '../config/expert-map.js';
import { createEpGroup } from '../group/create-ep-group.js';
import { allocateLayerBuffers } from '../layer/layer-buffers.js';
import { randomBatches, rounded } from '../oracle/batches.test-util.js';
import { checkCounts, checkRows } from '../oracle/check-rows.test-util.js';
import { expectedSum } from '../oracle/expected-combine.test-util.js';
import { expectedRows } from '../oracle/expected-rows.test-util.js';
import { bytesOf, poisoned, upload, valuesOf, writeRow } from '../oracle/on-device.test-util.js';
import type { EpHandle } from './ep-handle.js';

const hidden = 16;
const topK = 3;
const most = 6;
const maps = {
  even: 6,
  'uneven with replicas': { count: 5, placement: [[0, 1, 4], [], [2, 0, 3], [4]] },
} as const;
const sizes = [6, 0, 3, 5];

interface Case {
  readonly layout: EpLayout;
  readonly map: keyof typeof maps;
  readonly dtype: 'f32' | 'f16' | 'bf16';
  readonly change?: Partial<EpConfig>;
  readonly alignment?: number;
}

const cases: readonly Case[] = [
  ...epLayouts.flatMap((layout) =>
    (Object.keys(maps) as (keyof typeof maps)[]).map((map) => ({ layout, map, dtype: 'bf16' as const })),
  ),
  ...epLayouts.map((layout) => ({ layout, map: 'even' as const, dtype: 'f32' as const })),
  { layout: 'packed', map: 'even', dtype: 'f16', alignment: 4 },
  { layout: 'packed', map: 'even', dtype: 'bf16', change: { reduction: 'token' } },
  { layout: 'expert-major', map: 'even', dtype: 'bf16', change: { reduction: 'token' } },
  { layout: 'flat', map: 'even', dtype: 'bf16', change: { receiveBudget: 40 } },
];

describe('forward', () => {
  it.each(cases)('$layout, $map experts, $dtype, $change $alignment', async (options) => {
    const { layout, dtype, change = {}, alignment = 1 } = options;
    const experts = maps[options.map] as EpConfig['experts'];
    const map = expertMapOf(experts, sizes.length);
    const config = { experts, topK, hidden, dtype, maxTokensPerRank: most, ...change };
    const batches = randomBatches(sizes, { experts: map.experts, topK, hidden, dtype });
    const byRank = sizes.map((_, rank) => expectedRows(map, layout, batches, rank, { most, alignment }));
    /** What experts write to a row: anything that differs by row. */
    const answer = (rank: number, at: number, h: number): number =>
      rounded(dtype, ((rank * 131 + at * 17 + h) % 23) / 7 - 1);

    const world = await localWorld({ ranks: sizes.length, backend: 'embedded' });
    try {
      const results = await world.run(async (comm) => {
        const group = await createEpGroup(comm, config);
        const handle = group.createHandle(
          layout === 'packed' ? { layout, alignment } : { layout },
        ) as unknown as EpHandle;
        const batch = upload(comm, dtype, topK, hidden, batches[comm.rank]!);
        const buffers = allocateLayerBuffers(handle);
        for (const tensor of Object.values(buffers)) if (tensor !== undefined) bytesOf(tensor).fill(0xaa);
        const stream = comm.createStream();
        const { expertCounts, expertOffsets, sourceCounts, total, topkIdx, topkWeights, rows } = buffers;
        const counts = { expertCounts, expertOffsets, sourceCounts, total };
        const low = layout === 'expert-major' || layout === 'rank-major';
        handle.route(batch.topkIdx, low ? { stream } : { stream, counts });
        const { weights } = batch;
        const out = {
          tokens: rows,
          ...(topkIdx === undefined ? {} : { topkIdx }),
          ...(topkWeights === undefined ? {} : { topkWeights }),
          ...(low ? { sourceCounts } : {}),
          ...(layout === 'expert-major' ? { expertCounts } : {}),
        };
        handle.dispatch(batch.tokens, { stream, weights, out } as never);
        await stream.synchronize();
        const expected = byRank[comm.rank]!;
        checkRows(expected, layout, batches, buffers);
        checkCounts(expected, layout, alignment, buffers);
        const seen = await handle.counts();
        expect([...seen.perExpert]).toEqual(expected.perExpert);
        expect([...seen.perSource]).toEqual(expected.perSource);
        expect(seen.demand).toBe(expected.total);

        for (const { at } of expected.rows) writeRow(buffers.results, at, (h) => answer(comm.rank, at, h));
        const y = poisoned(comm, dtype, [batches[comm.rank]!.ids.length, hidden]);
        handle.combine(buffers.results, { stream, out: { tokens: y } } as never);
        await stream.synchronize();
        const values = valuesOf(y);
        await group.dispose();
        return values;
      });
      for (const [source, values] of results.entries()) {
        const expected = batches[source]!.ids.flatMap((_, token) =>
          Array.from({ length: hidden }, (_, h) =>
            expectedSum(byRank, source, token, (rank, at) => answer(rank, at, h), {
              dtype,
              weighted: layout === 'expert-major',
              reduction: change.reduction ?? 'rank',
            }),
          ),
        );
        expect(values).toEqual(expected);
      }
    } finally {
      await world.dispose();
    }
  });
});
