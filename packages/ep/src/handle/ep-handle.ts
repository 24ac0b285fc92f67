// SPDX-License-Identifier: Apache-2.0
// One routing of tokens and what is done with it: route, dispatch, combine, on streams and without a wait.

import type { Communicator, Stream } from '@nccl-ext/core';
import type { EpCounts, EpLayout } from '@nccl-ext/core/contract';
import { check, Resource, requireObject, streamHandleOf, unwrap } from '@nccl-ext/core/extend';
import type { CallPlace } from '../fields/call-place.js';
import type { HighThroughputLayout } from '../fields/modes.js';
import type { GroupCore } from '../group/group-core.js';
import type { EpTensor } from '../tensor/tensor.js';
import type { CombineOptions, DispatchOptions, IndexTensor, RouteOptions } from './call-options.js';
import { CallOrder } from './call-order.js';
import { combineCall } from './combine-call.js';
import { dispatchCall } from './dispatch-call.js';
import type { OpenedHandle } from './open-handle.js';
import { type OutputShapes, outputShapes, type ShapeOptions } from './output-shapes.js';
import { routeCall } from './route-call.js';

/**
 * Made by `group.createHandle`. Operations enqueue and return; every rank of the group enqueues the same ones in the same order, over all
 * handles. What is wrong with a call is thrown before anything is enqueued; what the device finds (ids, overflow, a missing rank) rejects
 * the next `stream.synchronize()`. All operations are capturable.
 *
 * @example
 * ```ts
 * handle.route(topkIdx, { stream });
 * handle.dispatch(tokens, { stream, weights, out: { tokens: received } });
 * handle.combine(received, { stream, out: { tokens: result } });
 * await stream.synchronize();
 * ```
 */
export class EpHandle<L extends EpLayout = EpLayout> extends Resource {
  readonly communicator: Communicator;
  readonly layout: L;
  /** Packed: rows that zones are padded to multiples of. */
  readonly alignment: number;
  /** The experts of this rank in local order. */
  readonly localExperts: readonly number[];
  readonly #core: GroupCore;
  readonly #opened: OpenedHandle;
  readonly #order = new CallOrder();

  /** @internal Use `group.createHandle`. */
  constructor(group: Resource, core: GroupCore, layout: L, alignment: number, opened: OpenedHandle) {
    super('EP handle', group);
    this.communicator = core.communicator;
    this.layout = layout;
    this.alignment = alignment;
    this.localExperts = core.settings.map.placement[core.communicator.rank]!;
    this.#core = core;
    this.#opened = opened;
  }

  /**
   * Takes a snapshot of where the tokens go: i32 or i64 [B, K] ids of experts, -1 for none; undefined when B is 0. In high throughput it
   * meets the other ranks and finds counts and slots.
   *
   * The stream rejects with ERR_ROUTING on every rank when an id is out of range or repeated in a token, and with ERR_OVERFLOW when
   * more is received than the budget allows (policy `error`); nothing moves then and the handle stays usable.
   *
   * @throws ERR_INVALID_ARGUMENT, ERR_INVALID_STATE while a send is open, ERR_CONTEXTS, ERR_QUEUE_FULL, ERR_MEMBERSHIP.
   */
  route(topkIdx: IndexTensor | undefined, options: RouteOptions<L>): void {
    this.#require('route');
    const { ep, runtime } = this.#core;
    const call = routeCall(this.#core, this.layout, topkIdx, options);
    check(runtime, ep.enqueueRoute(this.#opened.handle, this.#stream(options), call));
    this.#order.routed(call.tokens);
  }

  /**
   * Sends the rows [B, H] of the routed tokens to their experts; backward: rows of gradients, by the routing that is there. `tokens` and
   * weights are read and outputs written in stream order; inputs may change once the operation is done.
   *
   * @throws ERR_INVALID_ARGUMENT naming layout, mode, pass and field, ERR_OUT_OF_BOUNDS, ERR_OVERLAP, ERR_INVALID_STATE before a
   * route, ERR_CONTEXTS, ERR_QUEUE_FULL, ERR_MEMBERSHIP. The stream rejects with ERR_ROUTING (low latency), ERR_OVERFLOW (eager: the
   * output is too small; `seen` is the demand), ERR_TIMEOUT.
   */
  dispatch(tokens: EpTensor | undefined, options: DispatchOptions<L>): void {
    this.#require('dispatch');
    const { ep, runtime } = this.#core;
    const call = dispatchCall(
      this.#core,
      this.layout,
      this.#order.tokens,
      tokens,
      options as DispatchOptions<EpLayout>,
    );
    check(runtime, ep.enqueueDispatch(this.#opened.handle, this.#stream(options), call));
    this.#order.dispatched(call.sendOnly);
  }

  /**
   * Brings rows of the layout back to their tokens and sums them: y = round(sum over ranks of round(sum of w x over that rank's experts)).
   * Weights are applied in expert-major only; rows of the other layouts come weighted. Backward: gradients of rows and of weights.
   *
   * @throws as `dispatch`; ERR_INVALID_STATE before a dispatch of what was routed.
   */
  combine(rows: EpTensor, options: CombineOptions<L>): void {
    this.#require('combine');
    const { ep, runtime } = this.#core;
    const call = combineCall(
      this.#core,
      this.layout,
      this.#order.tokens,
      rows,
      options as CombineOptions<EpLayout>,
    );
    check(runtime, ep.enqueueCombine(this.#opened.handle, this.#stream(options), call));
    this.#order.combined(call.sendOnly);
  }

  /**
   * @internal Throws what route, dispatch and combine of one batch would throw for their arguments, before any of them is enqueued.
   */
  checkStep(
    topkIdx: IndexTensor | undefined,
    tokens: EpTensor | undefined,
    rows: EpTensor,
    options: {
      readonly route: RouteOptions<L>;
      readonly dispatch: DispatchOptions<L>;
      readonly combine: CombineOptions<L>;
    },
  ): void {
    this.#require('route');
    this.#stream(options.route);
    const { layout } = this;
    const { tokens: batch } = routeCall(this.#core, layout, topkIdx, options.route);
    dispatchCall(this.#core, layout, batch, tokens, options.dispatch as DispatchOptions<EpLayout>);
    combineCall(this.#core, layout, batch, rows, options.combine as CombineOptions<EpLayout>);
  }

  /** Ends the oldest open send of this handle: its outputs are there, and its inputs may change, once the stream has passed. */
  complete(
    this: [L] extends [HighThroughputLayout] ? never : EpHandle<L>,
    options: { readonly stream: Stream },
  ): void {
    requireObject('options', options);
    // The type of `this` keeps complete off high-throughput handles; it is this class all the same.
    const handle = this as EpHandle<EpLayout>;
    handle.#require('complete');
    const { ep, runtime } = handle.#core;
    check(runtime, ep.enqueueComplete(handle.#opened.handle, handle.#stream(options)));
    handle.#order.completed();
  }

  /**
   * What the last route (high throughput) or dispatch (low latency) found on this rank: received rows and demand, rows per local expert
   * and per source. Waits for what was enqueued on this handle before: the one call that waits for the device.
   *
   * @throws ERR_INVALID_STATE before a route (low latency: a dispatch); what the operation failed with.
   */
  async counts(): Promise<EpCounts> {
    this.#require('counts');
    return unwrap(await this.#core.ep.readCounts(this.#opened.handle));
  }

  /**
   * Shapes of the tensors that an operation of this handle gives, by name, to allocate: rows for the worst case or the budget unless
   * `rows` says how many, as after `counts()`.
   */
  outputShapes<O extends 'dispatch' | 'combine'>(
    operation: O,
    options: ShapeOptions = {},
  ): OutputShapes<L, O> {
    this.assertUsable();
    const batch = this.#order.tokens;
    return outputShapes<L, O>(this.#core, this.layout, this.alignment, batch, operation, options);
  }

  protected override async release(): Promise<void> {
    unwrap(await this.#core.ep.disposeEpHandle(this.#opened.handle));
    this.#opened.claimed.release();
  }

  #require(operation: 'route' | 'dispatch' | 'combine' | 'complete' | 'counts'): void {
    this.assertUsable();
    const { communicator, changes } = this.#core;
    const place: CallPlace = { rank: communicator.rank, operation, layout: this.layout, pass: 'forward' };
    this.#order.require(operation, place, changes);
  }

  #stream(options: { readonly stream: Stream }): number {
    return streamHandleOf(options.stream, this.communicator);
  }
}
