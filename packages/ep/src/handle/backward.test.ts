// SPDX-License-Identifier: Apache-2.0
// The backward pass in the high-throughput layouts: gradients reach every row of their token, and come back as sums.

import { localWorld } from '@nccl-ext/core';
import { expect, it } from 'vitest';
import { expertMapOf } from '../config/expert-map.js';
import { createEpGroup } from '../group/create-ep-group.js';
import { randomBatches, rounded } from '../oracle/batches.test-util.js';
import { expectedSum } from '../oracle/expected-combine.test-util.js';
import { expectedRows } from '../oracle/expected-rows.test-util.js';
import { place, poisoned, upload, valuesOf, writeRow } from '../oracle/on-device.test-util.js';
import { allocateTensor } from '../tensor/tensor.js';

const [experts, topK, hidden, most, dtype] = [6, 3, 8, 5, 'bf16'] as const;
const sizes = [5, 0, 4];
const map = expertMapOf(experts, sizes.length);
const batches = randomBatches(sizes, { experts, topK, hidden, dtype }, 7);
const gradients = randomBatches(sizes, { experts, topK, hidden, dtype }, 8);

it.each(['flat', 'packed'] as const)('%s', async (layout) => {
  const alignment = layout === 'packed' ? 2 : 1;
  const byRank = sizes.map((_, rank) => expectedRows(map, layout, batches, rank, { most, alignment }));
  const rowGradient = (rank: number, at: number, h: number): number =>
    rounded(dtype, ((rank * 7 + at * 5 + h) % 19) / 3 - 2);
  const weightGradient = (rank: number, at: number, position: number): number =>
    Math.fround((rank * 100 + at * 10 + position) / 7);
  const perRow = layout === 'flat' ? topK : 1;

  const world = await localWorld({ ranks: sizes.length, backend: 'embedded' });
  try {
    const results = await world.run(async (comm) => {
      const { rank } = comm;
      const group = await createEpGroup(comm, { experts, topK, hidden, dtype, maxTokensPerRank: most });
      const handle =
        layout === 'packed'
          ? group.createHandle({ layout: 'packed', alignment })
          : group.createHandle({ layout: 'flat' });
      const batch = upload(comm, dtype, topK, hidden, batches[rank]!);
      const { shape } = handle.outputShapes('dispatch').tokens;
      const rows = shape[0]!;
      const stream = comm.createStream();
      const received = allocateTensor(comm, dtype, shape);
      const { weights } = batch;
      handle.route(batch.topkIdx, { stream });
      handle.dispatch(batch.tokens, { stream, weights, out: { tokens: received } });

      const dY = place(comm, dtype, [sizes[rank]!, hidden], gradients[rank]!.tokens.flat());
      const scattered = poisoned(comm, dtype, shape);
      handle.dispatch(dY, { stream, pass: 'backward', out: { tokens: scattered } });
      await stream.synchronize();
      const seen = valuesOf(scattered);
      for (const { at, source, token } of byRank[rank]!.rows)
        expect(seen.slice(at * hidden, (at + 1) * hidden)).toEqual(gradients[source]!.tokens[token]);

      const dRows = poisoned(comm, dtype, shape);
      const dWeights = poisoned(comm, 'f32', layout === 'flat' ? [rows, topK] : [rows]);
      for (const { at, entries } of byRank[rank]!.rows) {
        writeRow(dRows, at, (h) => rowGradient(rank, at, h));
        const view = dWeights.buffer.view('f32');
        for (const position of entries.keys())
          view[at * perRow + position] = weightGradient(rank, at, position);
      }
      const dX = poisoned(comm, dtype, [sizes[rank]!, hidden]);
      const dW = poisoned(comm, 'f32', [sizes[rank]!, topK]);
      handle.combine(dRows, {
        stream,
        pass: 'backward',
        weights: dWeights,
        out: { tokens: dX, topkWeights: dW },
      });
      await stream.synchronize();
      return { dX: valuesOf(dX), dW: valuesOf(dW) };
    });
    for (const [source, { dX, dW }] of results.entries()) {
      expect(dX).toEqual(
        batches[source]!.ids.flatMap((_, token) =>
          Array.from({ length: hidden }, (_, h) =>
            expectedSum(byRank, source, token, (rank, at) => rowGradient(rank, at, h), {
              dtype,
              weighted: false,
            }),
          ),
        ),
      );
      const expected = batches[source]!.ids.flatMap((ids, token) =>
        ids.map((_, k) => {
          for (const [rank, { rows }] of byRank.entries())
            for (const row of rows) {
              const position = row.entries.findIndex((entry) => entry.k === k);
              if (row.source === source && row.token === token && position >= 0)
                return weightGradient(rank, row.at, position);
            }
          return 0;
        }),
      );
      expect(dW).toEqual(expected);
    }
  } finally {
    await world.dispose();
  }
});
