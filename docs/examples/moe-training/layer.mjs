// The layer on one rank: route, dispatch, experts, combine, and the same backwards, enqueued as one sequence without a wait.
import { allocateTensor, hostExperts, viewTensor } from '@nccl-ext/ep';
import { backward, forward } from './mlp.mjs';

/** `mlps[e]`: the experts, of which this rank only uses its own. `target` [B, H] is what the layer should give. */
export function createLayer(comm, group, mlps, { tokens: B, k: K, hidden: H, ranks }) {
  const handle = group.createHandle({ layout: 'packed', alignment: 4 });
  const stream = comm.createStream();
  const { tokens: rowShape, topkWeights: weightShape } = handle.outputShapes('dispatch');
  const make = (dtype, shape) => allocateTensor(comm, dtype, shape);
  const [x, y, dY, dX] = Array.from({ length: 4 }, () => make('f32', [B, H]));
  const [idx, weights, dWeights] = [make('i32', [B, K]), make('f32', [B, K]), make('f32', [B, K])];
  const [rows, results, dResults, dRows] = Array.from({ length: 4 }, () => make('f32', rowShape.shape));
  const [rowWeights, dRowWeights] = [make('f32', weightShape.shape), make('f32', weightShape.shape)];
  const local = handle.localExperts;
  const [counts, offsets] = [make('i32', [local.length]), make('i32', [local.length])];
  const call = { stream, layout: 'packed', localExperts: local, counts, offsets };

  // What the forward pass of an expert leaves to its backward pass: inputs, activations and results.
  const kept = new Map();
  const forwardExperts = hostExperts(({ expert, rows }) => {
    const { y, a } = forward(mlps[expert], rows);
    kept.set(expert, { x: rows, a, y });
    return y;
  });
  // `rows` are gradients of the weighted results: each is multiplied by its weight on the way in, and its weight gets a gradient.
  const backwardExperts = hostExperts(({ expert, rows: dWeighted, count }) => {
    const { x, a, y } = kept.get(expert);
    const first = viewTensor(offsets)[local.indexOf(expert)];
    const [w, dw] = [viewTensor(rowWeights), viewTensor(dRowWeights)];
    for (let row = 0; row < count; row++) {
      dw[first + row] = 0;
      for (let h = row * H; h < (row + 1) * H; h++) {
        dw[first + row] += dWeighted[h] * y[h];
        dWeighted[h] *= w[first + row];
      }
    }
    return backward(mlps[expert], x, a, dWeighted);
  });

  /** dY of the loss, which is the mean of (y - target)^2 / 2 over all elements of all ranks; returns this rank's part of the loss. */
  function lossGradient(target) {
    const [output, gradient] = [viewTensor(y), viewTensor(dY)];
    const elements = ranks * B * H;
    let loss = 0;
    for (const [i, value] of output.entries()) {
      const difference = value - target[i];
      loss += (difference * difference) / 2 / elements;
      gradient[i] = difference / elements;
    }
    return loss;
  }

  /** One step with tokens `input` [B, H] as `routed`; resolves to the loss and the gradients of weights and tokens. */
  return async function step(input, routed, target) {
    viewTensor(x).set(input);
    viewTensor(idx).set(routed.idx);
    viewTensor(weights).set(routed.weights);
    let loss;
    handle.route(idx, { stream, counts: { expertCounts: counts, expertOffsets: offsets } });
    handle.dispatch(x, { stream, weights, out: { tokens: rows, topkWeights: rowWeights } });
    forwardExperts.enqueue({ ...call, tokens: rows, topkWeights: rowWeights, out: results });
    handle.combine(results, { stream, out: { tokens: y } });
    stream.callHost(() => {
      loss = lossGradient(target);
    });
    // The backward pass of combine is a dispatch, and that of dispatch is a combine.
    handle.dispatch(dY, { stream, pass: 'backward', out: { tokens: dResults } });
    backwardExperts.enqueue({ ...call, tokens: dResults, out: dRows });
    handle.combine(dRows, {
      stream,
      pass: 'backward',
      weights: dRowWeights,
      out: { tokens: dX, topkWeights: dWeights },
    });
    await stream.synchronize();
    return { loss, dX: viewTensor(dX).slice(), dWeights: viewTensor(dWeights).slice() };
  };
}
