import { localWorld } from '@nccl-ext/core';
import { allocateTensor, createEpGroup, hostExperts, topK, viewTensor } from '@nccl-ext/ep';

const [B, K, E, H] = [3, 2, 8, 64]; // tokens of a rank, experts per token, experts (two on each rank), hidden size
const world = await localWorld({ ranks: 4, backend: 'embedded' });
try {
  await world.run(async (comm) => {
    const group = await createEpGroup(comm, {
      experts: E,
      topK: K,
      hidden: H,
      dtype: 'f32',
      maxTokensPerRank: B,
    });
    const experts = hostExperts(({ expert, rows }) => rows.map((x) => x * expert)); // expert e multiplies by e
    const layer = group.layer({ layout: 'flat', experts });
    const [tokens, out] = [allocateTensor(comm, 'f32', [B, H]), allocateTensor(comm, 'f32', [B, H])];
    const [topkIdx, weights] = [allocateTensor(comm, 'i32', [B, K]), allocateTensor(comm, 'f32', [B, K])];

    viewTensor(tokens).fill(10);
    const scores = Array.from({ length: B * E }, (_, i) => (i % 4 === comm.rank ? 1 : 0)); // two experts score best
    const routed = topK({ scores, experts: E, k: K, renormalize: true });
    viewTensor(topkIdx).set(routed.idx);
    viewTensor(weights).set(routed.weights);

    const stream = comm.createStream();
    layer.enqueue(stream, { tokens, topkIdx, weights, out }); // route, dispatch, experts, combine; nothing waits
    await stream.synchronize();
    const [first, second] = routed.idx;
    console.log(`rank ${comm.rank}: experts ${first} and ${second} make 10 to ${viewTensor(out)[0]}`);
  });
} finally {
  await world.dispose();
}
