// SPDX-License-Identifier: Apache-2.0
// A group of ranks that exchange tokens with experts: what it agreed on, who is a member, what it takes.

import { type Communicator, NcclExtError } from '@nccl-ext/core';
import type { EpLayout } from '@nccl-ext/core/contract';
import { Resource, requireObject, unwrap } from '@nccl-ext/core/extend';
import { EpHandle } from '../handle/ep-handle.js';
import { type HandleOptions, openHandle } from '../handle/open-handle.js';
import type { ExpertLayer } from '../layer/expert-layer.js';
import { type MoeLayer, moeLayer, requireExperts } from '../layer/moe-layer.js';
import type { ClaimedMemory } from '../memory/claim-memory.js';
import type { GroupCore } from './group-core.js';
import { activeBytes, type EpMembership, ranksOf } from './membership.js';

/** What a group takes on this rank now, in bytes. */
export interface EpGroupMemory {
  /** Tags and descriptors of the contexts. */
  readonly contexts: number;
  /** Parameters of enqueued calls. */
  readonly calls: number;
  /** Routing state of the handles that live. */
  readonly handles: number;
  readonly total: number;
}

/** Made by {@link createEpGroup}; it disposes its handles. */
export class EpGroup extends Resource {
  readonly communicator: Communicator;
  /** `placement[r]`: the experts of rank r in local order. */
  readonly placement: readonly (readonly number[])[];
  /** The experts of this rank in local order. */
  readonly localExperts: readonly number[];
  readonly #core: GroupCore;
  readonly #claimed: ClaimedMemory;
  readonly #handles = new Set<EpHandle>();

  /** @internal Use `createEpGroup`. */
  constructor(core: GroupCore, claimed: ClaimedMemory) {
    super('EP group', core.communicator);
    this.communicator = core.communicator;
    this.placement = core.settings.map.placement;
    this.localExperts = this.placement[core.communicator.rank]!;
    this.#core = core;
    this.#claimed = claimed;
  }

  /**
   * Not collective, but every rank makes its handles in the same order and with the same options: the k-th ones belong together. Cheap; a
   * program has one per layer or micro-batch that is in flight.
   *
   * @throws ERR_INVALID_ARGUMENT (alignment elsewhere than packed, a layout that the reduction excludes), ERR_OUT_OF_MEMORY.
   */
  createHandle<L extends EpLayout>(options: HandleOptions<L>): EpHandle<L> {
    this.assertUsable();
    requireObject('options', options);
    const { opened, alignment } = openHandle(this.#core, options);
    const handle = new EpHandle<L>(this, this.#core, options.layout, alignment, opened);
    for (const old of this.#handles) if (old.disposed) this.#handles.delete(old);
    this.#handles.add(handle as unknown as EpHandle);
    return handle;
  }

  /**
   * A handle of its own and a layer over it, with buffers for the budget or the worst case. They end with `layer.handle`.
   *
   * @throws as `createHandle`.
   */
  layer<L extends EpLayout>(options: HandleOptions<L> & { readonly experts: ExpertLayer }): MoeLayer<L> {
    requireObject('options', options);
    const { experts, ...handleOptions } = options;
    requireExperts(experts);
    const handle = this.createHandle<L>(handleOptions);
    try {
      return moeLayer(handle, experts);
    } catch (error) {
      // Nothing uses it, so that nothing can keep it from ending.
      void handle.dispose();
      throw error;
    }
  }

  /** Who takes part, and how often that has changed. */
  get membership(): EpMembership {
    const { epoch, active } = this.#state();
    return { epoch, active: ranksOf(active) };
  }

  /**
   * Ranks for which an operation of this rank waited in vain since the last change. Seeing is not agreeing: membership changes by
   * {@link changeMembership} only, and ranks may have seen different things.
   */
  observed(): readonly number[] {
    return ranksOf(this.#state().observed);
  }

  /**
   * Collective among the ranks that are listed, all of which pass the same list: from here on only they take part. Ends what is in flight
   * with ERR_MEMBERSHIP; handles stay, and are routed again before their next dispatch. A rank that was left out comes back by a later
   * call that lists it.
   *
   * @returns the new epoch.
   * @throws ERR_INVALID_STATE on a group without `mask`, ERR_INVALID_ARGUMENT, ERR_DISAGREEMENT when lists differ, ERR_TIMEOUT naming who
   * did not come; the group then stays as it was.
   */
  async changeMembership(active: readonly number[]): Promise<number> {
    this.assertUsable();
    const { ep, handle, settings, communicator } = this.#core;
    if (!settings.mask) {
      throw new NcclExtError('ERR_INVALID_STATE', 'The members of a group without mask are fixed.', {
        rank: communicator.rank,
        op: 'changeMembership',
        help: 'Create the group with mask: true.',
      });
    }
    const epoch = unwrap(await ep.changeMembership(handle, activeBytes(active, communicator)));
    this.#core.changes++;
    return epoch;
  }

  /** What the group takes on this rank now. `epMemory` says it before there is a group. */
  memory(): EpGroupMemory {
    this.assertUsable();
    const { contexts, calls, bytes } = this.#core.layout.group;
    const live = [...this.#handles].filter((handle) => !handle.disposed).length;
    const handles = live * this.#core.layout.handle.bytes;
    return { contexts: contexts.bytes, calls: calls.bytes, handles, total: bytes + handles };
  }

  protected override async release(): Promise<void> {
    unwrap(await this.#core.ep.disposeEpGroup(this.#core.handle));
    this.#claimed.release();
  }

  #state() {
    this.assertUsable();
    return this.#core.ep.groupState(this.#core.handle);
  }
}
