// Decoding: two micro-batches of a low-latency layer in one graph, recorded once and replayed with new ids at every step. While the rows of
// one micro-batch travel, the experts of the other work.
import { localWorld } from '@nccl-ext/core';
import { allocateTensor, createEpGroup, hostExperts, viewTensor } from '@nccl-ext/ep';

const [ranks, B, K, E, H] = [4, 2, 2, 8, 16]; // ranks, tokens of a micro-batch, experts per token, experts, hidden size
const steps = 5;

const world = await localWorld({ ranks, backend: 'embedded' });
try {
  const wrong = await world.run(async (comm) => {
    const group = await createEpGroup(comm, {
      experts: E,
      topK: K,
      hidden: H,
      dtype: 'f32',
      maxTokensPerRank: B,
    });
    const experts = hostExperts(({ expert, rows }) => rows.map((x) => x * (expert + 1)));
    const stream = comm.createStream();
    const batches = [microBatch(comm, group), microBatch(comm, group)];
    const graph = stream.capture(() => {
      for (const { handle, topkIdx, tokens, weights, received } of batches) {
        handle.route(topkIdx, { stream });
        handle.dispatch(tokens, { stream, weights, sendOnly: true, out: received });
      }
      for (const { handle, received, results, out } of batches) {
        handle.complete({ stream }); // rows of this micro-batch are here; the other one may still be on its way
        const { layout, localExperts } = handle;
        const { tokens, expertCounts: counts } = received;
        experts.enqueue({ stream, layout, localExperts, tokens, counts, out: results });
        handle.combine(results, { stream, sendOnly: true, out: { tokens: out } });
      }
      for (const { handle } of batches) handle.complete({ stream });
    });
    let differences = 0;
    for (let step = 0; step < steps; step++) {
      for (const [number, batch] of batches.entries()) chooseExperts(batch, step, comm.rank * 2 + number);
      stream.launch(graph);
      await stream.synchronize();
      for (const batch of batches) differences += countDifferences(batch);
    }
    return differences;
  });
  const values = steps * ranks * 2 * B * H;
  console.log(`${steps} replays of one graph, ${values} values, ${wrong.reduce((a, b) => a + b)} wrong`);
} finally {
  await world.dispose();
}

function microBatch(comm, group) {
  const handle = group.createHandle({ layout: 'expert-major' });
  const make = (dtype, shape) => allocateTensor(comm, dtype, shape);
  const { tokens, expertCounts } = handle.outputShapes('dispatch');
  return {
    handle,
    topkIdx: make('i32', [B, K]),
    weights: make('f32', [B, K]),
    tokens: make('f32', [B, H]),
    out: make('f32', [B, H]),
    received: { tokens: make('f32', tokens.shape), expertCounts: make('i32', expertCounts.shape) },
    results: make('f32', tokens.shape),
  };
}

/** What a router would do: two neighbouring experts per token, other ones at every step. */
function chooseExperts({ topkIdx, weights, tokens }, step, seed) {
  const first = (t) => (3 * step + 5 * t + seed) % E;
  viewTensor(topkIdx).set(Array.from({ length: B }, (_, t) => [first(t), (first(t) + 1) % E]).flat());
  viewTensor(weights).set(Array.from({ length: B }, () => [0.75, 0.25]).flat());
  viewTensor(tokens).fill(1 + step + seed);
}

/** Expert e multiplies by e + 1. */
function countDifferences({ topkIdx, weights, tokens, out }) {
  const [ids, w, x] = [viewTensor(topkIdx), viewTensor(weights), viewTensor(tokens)];
  const scale = (t) => [0, 1].reduce((sum, k) => sum + w[t * K + k] * (ids[t * K + k] + 1), 0);
  return viewTensor(out).filter((value, i) => value !== x[i] * scale(Math.floor(i / H))).length;
}
