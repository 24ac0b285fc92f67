// The router: scores = R x, the k best experts of each token, their softmax probabilities as weights, and the way back.
import { topK } from '@nccl-ext/ep';
import { multiply } from './mlp.mjs';

/** R [E, H] and rows x [B, H] to { scores [B, E], idx [B, K], weights [B, K] }. */
export function routeTokens(router, x, { experts, k, hidden }) {
  const scores = multiply(x, router, x.length / hidden, hidden, experts);
  return { scores, ...topK({ scores, experts, k }) };
}

/** Gradients of the weights [B, K] to { router [E, H], tokens [B, H] }: through the softmax, of which k probabilities were taken. */
export function routerGradients(router, x, { scores, idx, weights }, dWeights, { experts, k, hidden }) {
  const gradients = { router: new Float32Array(experts * hidden), tokens: new Float32Array(x.length) };
  for (let token = 0; token < x.length / hidden; token++) {
    const row = scores.subarray(token * experts, (token + 1) * experts);
    const exponentials = Array.from(row, (score) => Math.exp(score - Math.max(...row)));
    const total = exponentials.reduce((sum, value) => sum + value, 0);
    // d w_j / d score_e = w_j (1 if e = j else 0) - w_j p_e
    const dScores = new Float32Array(experts);
    for (let j = token * k; j < (token + 1) * k; j++) {
      const through = dWeights[j] * weights[j];
      dScores[idx[j]] += through;
      for (let e = 0; e < experts; e++) dScores[e] -= through * (exponentials[e] / total);
    }
    for (let e = 0; e < experts; e++) {
      for (let h = 0; h < hidden; h++) {
        gradients.router[e * hidden + h] += dScores[e] * x[token * hidden + h];
        gradients.tokens[token * hidden + h] += dScores[e] * router[e * hidden + h];
      }
    }
  }
  return gradients;
}
