// Trains a small Mixture-of-Experts layer on 4 ranks. No token is dropped; every gradient is compared with that of the same layer computed
// in one place. Parts: moe-training/router.mjs, mlp.mjs (an expert), layer.mjs (what a rank enqueues), dense.mjs (the comparison).
import { localWorld } from '@nccl-ext/core';
import { createEpGroup } from '@nccl-ext/ep';
import { denseStep } from './moe-training/dense.mjs';
import { createLayer } from './moe-training/layer.mjs';
import { createMlp, descend } from './moe-training/mlp.mjs';
import { routerGradients, routeTokens } from './moe-training/router.mjs';

const size = { ranks: 4, experts: 8, k: 2, tokens: 16, hidden: 16, inner: 24 };
const steps = 60;
const rate = 6;
/** Gradients are sums in f32 here and in f64 there: they may differ by this part of the largest gradient of their tensor. */
const tolerance = 2e-6;

const random = randomNumbers(1);
const values = (count, scale = 1) => Float32Array.from({ length: count }, () => random() * scale);
const mlps = Array.from({ length: size.experts }, () => createMlp(size.hidden, size.inner, random));
const router = values(size.experts * size.hidden, 0.5);
// The layer is to learn |x|, which no single expert of it can do for all tokens.
const batches = Array.from({ length: size.ranks }, () => {
  const x = values(size.tokens * size.hidden);
  return { x, target: x.map(Math.abs) };
});

const world = await localWorld({ ranks: size.ranks, backend: 'embedded' });
try {
  const layers = await world.run(async (comm) => {
    const { experts, k: topK, hidden, tokens: maxTokensPerRank } = size;
    const group = await createEpGroup(comm, { experts, topK, hidden, dtype: 'f32', maxTokensPerRank });
    return createLayer(comm, group, mlps, size);
  });
  console.log('step   loss   gradients equal the dense ones within');
  for (let step = 0; step <= steps; step++) {
    const routed = batches.map(({ x }) => routeTokens(router, x, size));
    const parts = await world.run(({ rank }) =>
      layers[rank](batches[rank].x, routed[rank], batches[rank].target),
    );
    const back = parts.map(({ dWeights }, rank) =>
      routerGradients(router, batches[rank].x, routed[rank], dWeights, size),
    );
    // Every rank has a copy of the router: its gradients are summed over ranks. In one process that is an addition.
    const dRouter = router.map((_, i) => back.reduce((sum, part) => sum + part.router[i], 0));
    const loss = parts.reduce((sum, part) => sum + part.loss, 0);

    const dense = denseStep(
      mlps,
      router,
      batches.map((batch, rank) => ({ ...batch, ...routed[rank] })),
      size,
    );
    const error = Math.max(
      relativeError([loss], [dense.loss]),
      relativeError(dRouter, dense.router),
      ...mlps.map(({ d1 }, e) => relativeError(d1, dense.experts[e].d1)),
      ...mlps.map(({ d2 }, e) => relativeError(d2, dense.experts[e].d2)),
      ...parts.map(({ dX }, rank) =>
        relativeError(
          dX.map((value, i) => value + back[rank].tokens[i]),
          dense.tokens[rank],
        ),
      ),
    );
    if (!(error <= tolerance)) throw new Error(`step ${step}: gradients differ by ${error}`);
    if (step % 10 === 0) console.log(`${String(step).padStart(4)}  ${loss.toFixed(3)}   ${tolerance}`);

    for (const mlp of mlps) descend(mlp, rate);
    for (const i of router.keys()) router[i] -= rate * dRouter[i];
  }
} finally {
  await world.dispose();
}

/** The largest difference, as a part of the largest value. */
function relativeError(seen, expected) {
  const largest = expected.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
  return expected.reduce((max, value, i) => Math.max(max, Math.abs(seen[i] - value)), 0) / (largest || 1);
}

/** Uniform in -1 to 1, the same in every run. */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 2 ** 32) * 2 - 1;
  };
}
