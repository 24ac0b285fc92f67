// Runs the whole layer on the embedded backend: what the picture of dispatch and combine shows at its right end.

import { localWorld } from '../../packages/core/dist/index.js';
import { allocateTensor, createEpGroup, hostExperts, viewTensor } from '../../packages/ep/dist/index.js';
import { experts, hidden, most, ranks, routing, topK } from './routing.mjs';

/** The input of a token, for a picture that shows sums. */
export const inputOf = (source, token) => 4 * (source * most + token + 1);

/** `[rank][token]`: what combine gives, where expert e multiplies by e + 1. */
export async function runLayer() {
  const world = await localWorld({ ranks, backend: 'embedded' });
  try {
    return await world.run(async (comm) => {
      const batch = routing[comm.rank];
      const put = (dtype, width, values) => {
        const made = allocateTensor(comm, dtype, [batch.length, width]);
        viewTensor(made).set(values.flat());
        return made;
      };
      const group = await createEpGroup(comm, {
        experts,
        topK,
        hidden,
        dtype: 'f32',
        maxTokensPerRank: most,
      });
      const multiply = hostExperts(({ expert, rows }) => rows.map((x) => x * (expert + 1)));
      const layer = group.layer({ layout: 'flat', experts: multiply });
      const out = allocateTensor(comm, 'f32', [batch.length, hidden]);
      const stream = comm.createStream();
      layer.enqueue(stream, {
        tokens: put(
          'f32',
          hidden,
          batch.map((_, token) => Array(hidden).fill(inputOf(comm.rank, token))),
        ),
        topkIdx: put(
          'i32',
          topK,
          batch.map(({ ids }) => ids),
        ),
        weights: put(
          'f32',
          topK,
          batch.map(({ weights }) => weights),
        ),
        out,
      });
      await stream.synchronize();
      return batch.map((_, token) => viewTensor(out)[token * hidden]);
    });
  } finally {
    await world.dispose();
  }
}
