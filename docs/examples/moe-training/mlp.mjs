// One expert: y = W2 tanh(W1 x), in f32, with what its backward pass needs.

/** Row-major weights W1 [F, H] and W2 [H, F], and their gradients. */
export function createMlp(hidden, inner, random) {
  const make = (size, scale) => Float32Array.from({ length: size }, () => random() * scale);
  return {
    hidden,
    inner,
    w1: make(inner * hidden, 1 / Math.sqrt(hidden)),
    w2: make(hidden * inner, 1 / Math.sqrt(inner)),
    d1: new Float32Array(inner * hidden),
    d2: new Float32Array(hidden * inner),
  };
}

/** Rows x [count, H] to { y [count, H], a [count, F] }; `a` is what tanh gave. */
export function forward({ hidden, inner, w1, w2 }, x) {
  const count = x.length / hidden;
  const a = multiply(x, w1, count, hidden, inner).map(Math.tanh);
  return { y: multiply(a, w2, count, inner, hidden), a };
}

/** Gradients dy [count, H] of the rows that `x` gave: adds to d1 and d2, returns those of x. */
export function backward({ hidden, inner, w1, w2, d1, d2 }, x, a, dy) {
  const count = x.length / hidden;
  const dx = new Float32Array(x.length);
  for (let row = 0; row < count; row++) {
    for (let f = 0; f < inner; f++) {
      const activation = a[row * inner + f];
      let da = 0;
      for (let h = 0; h < hidden; h++) {
        const gradient = dy[row * hidden + h];
        da += gradient * w2[h * inner + f];
        d2[h * inner + f] += gradient * activation;
      }
      const dz = da * (1 - activation * activation);
      for (let h = 0; h < hidden; h++) {
        d1[f * hidden + h] += dz * x[row * hidden + h];
        dx[row * hidden + h] += dz * w1[f * hidden + h];
      }
    }
  }
  return dx;
}

/** SGD; the gradients start anew. */
export function descend({ w1, w2, d1, d2 }, rate) {
  for (const [w, d] of [
    [w1, d1],
    [w2, d2],
  ]) {
    for (const i of w.keys()) w[i] -= rate * d[i];
    d.fill(0);
  }
}

/** Rows [count, from] times W^T, where W is [to, from]. */
export function multiply(rows, w, count, from, to) {
  const out = new Float32Array(count * to);
  for (let row = 0; row < count; row++) {
    for (let o = 0; o < to; o++) {
      let sum = 0;
      for (let i = 0; i < from; i++) sum += rows[row * from + i] * w[o * from + i];
      out[row * to + o] = sum;
    }
  }
  return out;
}
