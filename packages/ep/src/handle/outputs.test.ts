// SPDX-License-Identifier: Apache-2.0
// Variants of outputs: 64-bit counters, ids as they were routed, and a fill of what nobody writes.

import { localWorld, type World } from '@nccl-ext/core';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createEpGroup } from '../group/create-ep-group.js';
import { bytesOf, place, poisoned, valuesOf } from '../oracle/on-device.test-util.js';
import { allocateTensor } from '../tensor/tensor.js';
import { viewTensor } from '../tensor/view-tensor.js';

const [topK, hidden] = [2, 8];
const config = { experts: 4, topK, hidden, dtype: 'f32', maxTokensPerRank: 2 } as const;

let world: World;
beforeEach(async () => {
  world = await localWorld({ ranks: 2, backend: 'embedded', timeoutMs: 3000 });
});
afterEach(() => world.dispose());

it('counters may be i64 and ids global, in flat', async () => {
  const seen = await world.run(async (comm) => {
    const handle = (await createEpGroup(comm, config)).createHandle({ layout: 'flat' });
    const stream = comm.createStream();
    const topkIdx = allocateTensor(comm, 'i64', [2, topK]);
    viewTensor(topkIdx).set(BigInt64Array.from([3n, 0n, 2n, 3n]));
    const make = (...shape: number[]) => poisoned(comm, 'i64', shape);
    const counts = {
      expertCounts: make(2),
      sourceCounts: make(2),
      total: make(1),
      demand: make(1),
    };
    handle.route(topkIdx, { stream, counts });
    const weights = place(comm, 'f32', [2, topK], [1, 2, 3, 4]);
    const out = {
      tokens: poisoned(comm, 'f32', [4, hidden]),
      topkIdx: make(4, topK),
      topkWeights: poisoned(comm, 'f32', [4, topK]),
    };
    handle.dispatch(place(comm, 'f32', [2, hidden], Array(16).fill(comm.rank)), {
      stream,
      weights,
      ids: 'global',
      out,
    });
    await stream.synchronize();
    const { rows } = await handle.counts();
    return {
      ids: valuesOf(out.topkIdx).slice(0, rows * topK),
      weights: valuesOf(out.topkWeights).slice(0, rows * topK),
      counts: Object.values(counts).map(valuesOf),
    };
  });
  expect(seen[0]).toEqual({ ids: [0, -1, 0, -1], weights: [2, 0, 2, 0], counts: [[2, 0], [1, 1], [2], [2]] });
  expect(seen[1]).toEqual({
    ids: [3, -1, 2, 3, 3, -1, 2, 3],
    weights: [1, 0, 3, 4, 1, 0, 3, 4],
    counts: [[2, 4], [2, 2], [4], [4]],
  });
});

it('debugFill fills the rows that a dispatch leaves unwritten', async () => {
  await world.run(async (comm) => {
    const group = await createEpGroup(comm, { ...config, debugFill: 0x5a });
    const handle = group.createHandle({ layout: 'expert-major' });
    const stream = comm.createStream();
    handle.route(place(comm, 'i32', [1, topK], [0, -1]), { stream });
    const tokens = poisoned(comm, 'f32', [2, 4, hidden]);
    const out = { tokens, expertCounts: allocateTensor(comm, 'i32', [2]) };
    const weights = place(comm, 'f32', [1, topK], [1, 1]);
    handle.dispatch(place(comm, 'f32', [1, hidden], Array(8).fill(7)), { stream, weights, out });
    await stream.synchronize();
    const rows = comm.rank === 0 ? 2 : 0;
    expect(valuesOf(out.expertCounts)).toEqual([rows, 0]);
    expect(valuesOf(tokens).slice(0, rows * hidden)).toEqual(Array(rows * hidden).fill(7));
    expect(new Set(bytesOf(tokens).subarray(rows * hidden * 4))).toEqual(new Set([0x5a]));
  });
});
