// SPDX-License-Identifier: Apache-2.0
// A whole layer equals the sum of its experts, enqueued or replayed as a graph, in every layout.

import { type Communicator, localWorld, type World } from '@nccl-ext/core';
import { epLayouts } from '@nccl-ext/core/contract';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EpConfig } from '../config/ep-config.js';
import { createEpGroup } from '../group/create-ep-group.js';
import { randomBatches } from '../oracle/batches.test-util.js';
import { place, upload, valuesOf } from '../oracle/on-device.test-util.js';
import { allocateTensor } from '../tensor/tensor.js';
import { viewTensor } from '../tensor/view-tensor.js';
import { hostExperts } from './host-experts.js';

const [experts, topK, hidden, most] = [6, 2, 8, 5];
const dtype = 'f32';
const config: EpConfig = { experts, topK, hidden, dtype, maxTokensPerRank: most };
const sizes = [5, 0, 3];
const batches = randomBatches(sizes, { experts, topK, hidden, dtype }, 3);
/** Expert e. */
const f = (expert: number, x: number): number => Math.fround(Math.fround(x * (expert + 1)) + expert);

let world: World;
beforeEach(async () => {
  world = await localWorld({ ranks: 3, backend: 'embedded', timeoutMs: 4000 });
});
afterEach(() => world.dispose());

/** What the layer must give, up to the order of sums. */
function dense(rank: number, scale = 1): number[] {
  const { ids, weights, tokens } = batches[rank]!;
  return ids.flatMap((row, t) =>
    tokens[t]!.map((x) =>
      row.reduce((sum, id, k) => (id < 0 ? sum : sum + weights[t]![k]! * f(id, x * scale)), 0),
    ),
  );
}

const layerExperts = hostExperts(({ expert, rows }) => rows.map((x) => f(expert, x)));

async function open(comm: Communicator, layout: (typeof epLayouts)[number], plugged = layerExperts) {
  const group = await createEpGroup(comm, config);
  const layer = group.layer({ layout, experts: plugged });
  const batch = upload(comm, dtype, topK, hidden, batches[comm.rank]!);
  const out = allocateTensor(comm, dtype, [sizes[comm.rank]!, hidden]);
  return { group, layer, stream: comm.createStream(), call: { ...batch, out } };
}

describe.each(epLayouts)('%s', (layout) => {
  it('enqueues as one call, and replays as one graph', async () => {
    await world.run(async (comm) => {
      const { layer, stream, call } = await open(comm, layout);
      layer.enqueue(stream, call);
      await stream.synchronize();
      const close = (scale: number) => {
        const expected = dense(comm.rank, scale);
        for (const [i, value] of valuesOf(call.out).entries()) expect(value).toBeCloseTo(expected[i]!, 4);
      };
      close(1);
      const graph = stream.capture(() => layer.enqueue(stream, call));
      for (const scale of [2, 3]) {
        const values = batches[comm.rank]!.tokens.flat().map((x) => x * scale);
        (viewTensor(call.tokens) as Float32Array).set(values);
        stream.launch(graph);
        stream.launch(graph);
        await stream.synchronize();
        close(scale);
      }
      await expect(layer.handle.dispose()).rejects.toMatchObject({ code: 'ERR_BUSY' });
      await graph.dispose();
      await layer.handle.dispose();
    });
  });
});

describe('host experts', () => {
  it('may be asynchronous', async () => {
    const slow = hostExperts(async ({ expert, rows }) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return rows.map((x) => f(expert, x));
    });
    await world.run(async (comm) => {
      const { layer, stream, call } = await open(comm, 'flat', slow);
      layer.enqueue(stream, call);
      await stream.synchronize();
      const expected = dense(comm.rank);
      for (const [i, value] of valuesOf(call.out).entries()) expect(value).toBeCloseTo(expected[i]!, 4);
    });
  });

  it('reject the stream when they throw', async () => {
    const broken = hostExperts(({ rank, rows }) => {
      if (rank === 0) throw new Error('no such weights');
      return rows;
    });
    const errors = await Promise.all(
      world.ranks.map(async (comm) => {
        const { layer, stream, call } = await open(comm, 'packed', broken);
        layer.enqueue(stream, call);
        return stream.synchronize().then(
          () => undefined,
          (error: Error) => error,
        );
      }),
    );
    expect(String(errors[0])).toMatch(/no such weights/);
  });
});

it.each(epLayouts)('%s: a layer call that is wrong anywhere enqueues nothing', async (layout) => {
  await world.run(async (comm) => {
    const { layer, stream, call } = await open(comm, layout);
    const wrong = { ...call, out: allocateTensor(comm, 'bf16', [sizes[comm.rank]!, hidden]) };
    if (comm.rank === 0) {
      expect(() => layer.enqueue(stream, wrong)).toThrow(/combine, .* out.tokens must be f32/);
      expect(() => layer.enqueue(stream, { ...call, renormalise: true } as never)).toThrow(
        /renormalise is unknown in the call of a layer; did you mean renormalize\?/,
      );
    }
    layer.enqueue(stream, call);
    await stream.synchronize();
  });
});

it('layers end with their handles, and their buffers with them', async () => {
  await world.run(async (comm) => {
    const { layer, stream, call } = await open(comm, 'flat');
    await layer.handle.dispose();
    expect(layer.disposed).toBe(true);
    expect(layer.buffers.rows.buffer.disposed).toBe(true);
    expect(() => layer.enqueue(stream, call)).toThrow(expect.objectContaining({ code: 'ERR_DISPOSED' }));
  });
});

it('renormalize makes weights of live entries sum to 1', async () => {
  await world.run(async (comm) => {
    const group = await createEpGroup(comm, config);
    const layer = group.layer({ layout: 'expert-major', experts: hostExperts(({ rows }) => rows) });
    const out = allocateTensor(comm, dtype, [1, hidden]);
    const stream = comm.createStream();
    layer.enqueue(stream, {
      tokens: place(comm, dtype, [1, hidden], Array(hidden).fill(4)),
      topkIdx: place(comm, 'i32', [1, topK], [2, -1]),
      weights: place(comm, 'f32', [1, topK], [0.25, 0.5]),
      out,
      renormalize: true,
    });
    await stream.synchronize();
    expect(valuesOf(out)).toEqual(Array(hidden).fill(4));
  });
});
