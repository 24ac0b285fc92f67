// The same layer without expert parallelism: all tokens and experts in one place, token by token, in double precision.

/**
 * `batches[s]`: { x [B, H], target [B, H], scores, idx and weights of the router } of rank s. Returns the loss and all gradients: `experts[e]`:
 * { d1, d2 }, `router` [E, H], `tokens[s]` [B, H].
 */
export function denseStep(mlps, router, batches, { experts, tokens: B, k: K, hidden: H, inner: F }) {
  const elements = batches.length * B * H;
  const zeros = (size) => new Float64Array(size);
  const gradients = {
    loss: 0,
    experts: mlps.map(() => ({ d1: zeros(F * H), d2: zeros(H * F) })),
    router: zeros(experts * H),
    tokens: batches.map(() => zeros(B * H)),
  };
  for (const [source, batch] of batches.entries())
    for (let token = 0; token < B; token++) denseToken(source, batch, token);
  return gradients;

  function denseToken(source, { x: all, target, scores, idx }, token) {
    const x = all.subarray(token * H, (token + 1) * H);
    const dx = gradients.tokens[source].subarray(token * H, (token + 1) * H);
    const row = Array.from(scores.subarray(token * experts, (token + 1) * experts));
    const exponentials = row.map((score) => Math.exp(score - Math.max(...row)));
    const p = exponentials.map((value) => value / exponentials.reduce((sum, term) => sum + term, 0));
    const chosen = Array.from(idx.subarray(token * K, (token + 1) * K));

    const a = chosen.map((e) => times(mlps[e].w1, x, F).map(Math.tanh));
    const f = chosen.map((e, j) => times(mlps[e].w2, a[j], H));
    const dy = range(H).map((h) => {
      const y = chosen.reduce((sum, e, j) => sum + p[e] * f[j][h], 0);
      const difference = y - target[token * H + h];
      gradients.loss += difference ** 2 / 2 / elements;
      return difference / elements;
    });

    const dp = zeros(experts);
    for (const [j, e] of chosen.entries()) {
      dp[e] = dot(dy, f[j]);
      const df = dy.map((value) => value * p[e]);
      const { d1, d2 } = gradients.experts[e];
      for (let i = 0; i < F; i++) {
        const da = range(H).reduce((sum, h) => sum + df[h] * mlps[e].w2[h * F + i], 0);
        const dz = da * (1 - a[j][i] ** 2);
        for (let h = 0; h < H; h++) {
          d2[h * F + i] += df[h] * a[j][i];
          d1[i * H + h] += dz * x[h];
          dx[h] += dz * mlps[e].w1[i * H + h];
        }
      }
    }
    // Softmax: d score_e = p_e (dp_e - sum over j of p_j dp_j)
    const mean = dot(p, dp);
    for (let e = 0; e < experts; e++) {
      const dScore = p[e] * (dp[e] - mean);
      for (let h = 0; h < H; h++) {
        gradients.router[e * H + h] += dScore * x[h];
        dx[h] += dScore * router[e * H + h];
      }
    }
  }
}

const range = (size) => Array.from({ length: size }, (_, i) => i);
const dot = (a, b) => range(a.length).reduce((sum, i) => sum + a[i] * b[i], 0);
/** W x for W [rows, x.length]. */
const times = (w, x, rows) =>
  range(rows).map((row) => dot(w.subarray(row * x.length, (row + 1) * x.length), x));
