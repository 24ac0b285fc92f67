// SPDX-License-Identifier: Apache-2.0
// A whole layer, route to combine, as one call without a wait, so that a graph can record it.

import { DeviceBuffer, type Stream } from '@nccl-ext/core';
import type { EpLayout } from '@nccl-ext/core/contract';
import { Resource, requireFunction, requireObject } from '@nccl-ext/core/extend';
import { invalid, requireNames } from '../config/require-values.js';
import type {
  CombineOptions,
  DispatchOptions,
  IndexTensor,
  RouteOptions,
  WeightTensor,
} from '../handle/call-options.js';
import { EpHandle } from '../handle/ep-handle.js';
import type { EpTensor } from '../tensor/tensor.js';
import type { ExpertLayer } from './expert-layer.js';
import { allocateLayerBuffers, type LayerBuffers } from './layer-buffers.js';

/** One batch of a layer. */
export interface LayerCall {
  /** [B, H]; undefined when B is 0, as the others. */
  readonly tokens: EpTensor | undefined;
  /** i32 or i64 [B, K]. */
  readonly topkIdx: IndexTensor | undefined;
  /** f32 [B, K]. */
  readonly weights: WeightTensor | undefined;
  /** [B, H]: the weighted sum of what the experts made of each token. */
  readonly out: EpTensor | undefined;
  /** As in `dispatch`. */
  readonly renormalize?: boolean | undefined;
}

/** Made by {@link moeLayer} or `group.layer`; it ends with its handle. */
export class MoeLayer<L extends EpLayout = EpLayout> extends Resource {
  readonly handle: EpHandle<L>;
  readonly buffers: LayerBuffers;
  readonly #experts: ExpertLayer;
  readonly #own: readonly DeviceBuffer[];

  /** @internal Use `moeLayer`. */
  constructor(
    handle: EpHandle<L>,
    experts: ExpertLayer,
    buffers: LayerBuffers,
    own: readonly DeviceBuffer[],
  ) {
    super('MoE layer', handle);
    this.handle = handle;
    this.buffers = buffers;
    this.#experts = experts;
    this.#own = own;
  }

  /**
   * Puts route, dispatch, experts and combine on `stream` and returns. Every rank enqueues the layer equally often. Capturable.
   *
   * @throws what the operations of the handle throw; see `EpHandle`.
   * @example
   * ```ts
   * layer.enqueue(stream, { tokens, topkIdx, weights, out: result });
   * await stream.synchronize();
   * ```
   */
  enqueue(stream: Stream, call: LayerCall): void {
    this.assertUsable();
    requireObject('call', call);
    requireNames('the call of a layer', call, ['tokens', 'topkIdx', 'weights', 'out', 'renormalize']);
    const { handle, buffers } = this;
    const { layout, localExperts } = handle;
    const { tokens, topkIdx, weights, out, renormalize = false } = call;
    const { rows, results } = buffers;
    const outputs = dispatchOutputs(layout, buffers);
    const options = {
      route: routeOptions(layout, stream, weights, buffers) as RouteOptions<L>,
      dispatch: { stream, weights, renormalize, out: outputs } as unknown as DispatchOptions<L>,
      combine: { stream, out: { tokens: out } } as CombineOptions<L>,
    };
    // A call that is wrong further on must not leave a route behind, which the other ranks would meet alone.
    handle.checkStep(topkIdx, tokens, results, options);
    handle.route(topkIdx, options.route);
    handle.dispatch(tokens, options.dispatch);
    this.#experts.enqueue({
      stream,
      layout,
      localExperts,
      tokens: rows,
      counts: buffers.expertCounts,
      offsets: buffers.expertOffsets,
      sourceCounts: buffers.sourceCounts,
      total: buffers.total,
      topkIdx: buffers.topkIdx,
      topkWeights: buffers.topkWeights,
      out: results,
    });
    handle.combine(results, options.combine);
  }

  protected override async release(): Promise<void> {
    for (const buffer of this.#own) await buffer.dispose();
  }
}

/**
 * A layer over `handle`. Without `buffers` it allocates them for the budget or the worst case, and frees them with the handle.
 *
 * @throws ERR_OUT_OF_MEMORY, ERR_INVALID_ARGUMENT.
 */
export function moeLayer<L extends EpLayout>(
  handle: EpHandle<L>,
  experts: ExpertLayer,
  buffers?: LayerBuffers,
): MoeLayer<L> {
  if (!(handle instanceof EpHandle)) throw invalid('handle', 'must be a handle of createHandle', handle);
  requireExperts(experts);
  if (buffers !== undefined) return new MoeLayer(handle, experts, buffers, []);
  const made = allocateLayerBuffers(handle);
  const own = Object.values(made).flatMap((tensor?: EpTensor) =>
    tensor?.buffer instanceof DeviceBuffer ? [tensor.buffer] : [],
  );
  return new MoeLayer(handle, experts, made, own);
}

/** Throws ERR_INVALID_ARGUMENT unless `experts` can be plugged in. */
export function requireExperts(experts: unknown): asserts experts is ExpertLayer {
  requireObject('experts', experts);
  requireFunction('experts.enqueue', (experts as Partial<ExpertLayer>).enqueue);
}

function routeOptions(
  layout: EpLayout,
  stream: Stream,
  weights: WeightTensor | undefined,
  { expertCounts, expertOffsets, sourceCounts, total }: LayerBuffers,
): RouteOptions<EpLayout> {
  if (layout === 'expert-major' || layout === 'rank-major') return { stream };
  return { stream, weights, counts: { expertCounts, expertOffsets, sourceCounts, total } };
}

function dispatchOutputs(layout: EpLayout, buffers: LayerBuffers): Record<string, EpTensor | undefined> {
  const { rows: tokens, expertCounts, sourceCounts, topkIdx, topkWeights } = buffers;
  switch (layout) {
    case 'expert-major':
      return { tokens, expertCounts, sourceCounts };
    case 'rank-major':
      return { tokens, topkWeights, topkIdx, sourceCounts };
    case 'flat':
      return { tokens, topkWeights, topkIdx };
    case 'packed':
      return { tokens, topkWeights };
  }
}
