// SPDX-License-Identifier: Apache-2.0
// Changes the members of a group: a new epoch in which only they take part, with all tags and contexts anew.

import type { EpGroupHandle, EpGroupState as EpGroupReport, Outcome } from '../../contract/index.js';
import { takeDisagreement } from '../host/collective.js';
import { errorRecord, failed, isError } from '../host/errors.js';
import { type BackendState, unusable } from '../host/state.js';
import { offsetOf } from '../memory/address.js';
import { invalid } from './check-group.js';
import type { EpGroupState, SharedEpGroup } from './ep-objects.js';
import { groupWord } from './ep-words.js';

const op = 'changeMembership';

export async function changeMembership(
  state: BackendState,
  handle: EpGroupHandle,
  active: Uint8Array,
): Promise<Outcome<number>> {
  const group = state.owned('epGroup', handle, op);
  if (isError(group)) return failed(group);
  const { owner, config, shared } = group;
  const refusal = unusable(owner, op);
  if (refusal !== undefined) return failed(refusal);
  const { ranks } = owner.world.options;
  if (!config.mask)
    return failed(
      errorRecord('ERR_INVALID_STATE', op, 'the group was made without mask, so its members are fixed', {
        rank: owner.rank,
        help: 'Create the group with mask: true.',
      }),
    );
  if (active.length !== ranks || active.some((value) => value > 1) || active[owner.rank] !== 1)
    return failed(
      invalid(
        owner,
        op,
        `active must hold 0 or 1 for each of ${ranks} ranks, and 1 for rank ${owner.rank} itself`,
      ),
    );
  const wanted = active.slice();
  if (takeDisagreement(owner, op)) wanted[(owner.rank + 1) % ranks]! ^= 1;
  return new Promise((resolve) => {
    owner.gate.arrive(() => {
      const reason = owner.world.poisonOf(owner.rank) ?? unusable(owner, op);
      resolve(
        reason === undefined
          ? shared.meeting.arrive(owner.rank, wanted)
          : failed({ ...reason, op, rank: owner.rank }),
      );
    });
  });
}

/** Makes `active` the members, on the thread that owns the world; workers see the epoch at their next step. */
export function applyMembers(state: BackendState, shared: SharedEpGroup, active: Uint8Array): number {
  const { ranks } = shared.groups[0]!.owner.world.options;
  const view = tables(state, shared, ranks);
  // The epoch first: who sees a new member while it works for the old epoch sees the new one, too, and leaves.
  const epoch = Atomics.add(view.epoch, 0, 1) + 1;
  for (let rank = 0; rank < ranks; rank++) Atomics.store(view.active, rank, active[rank]!);
  for (const group of shared.groups) {
    const { rank } = group.owner;
    if (active[rank] !== 1) continue;
    Atomics.store(view.stale, rank, 0);
    view.observed.fill(0, rank * ranks, (rank + 1) * ranks);
    group.epoch = epoch;
    group.active = active.slice();
    startAnew(group);
  }
  shared.groups[0]!.owner.world.wake();
  return epoch;
}

/** No eager send of the old epoch can be completed any more, and uses of contexts count from nothing. */
function startAnew(group: EpGroupState): void {
  for (const handle of group.handles) {
    for (const send of handle.sends.splice(0)) {
      for (const buffer of send.buffers) buffer.groups--;
      if (send.slot !== undefined) send.slot.held = false;
    }
    handle.progress.tokens = -1;
    handle.progress.dispatched = false;
  }
  for (const context of group.contexts) {
    context.issued = 0;
    context.send = undefined;
  }
  group.nextContext = 0;
}

/** Whether the rank's operations are refused until the members change. */
export function isStale(state: BackendState, group: EpGroupState): boolean {
  const { ranks } = group.owner.world.options;
  return Atomics.load(tables(state, group.shared, ranks).stale, group.owner.rank) !== 0;
}

export function reportOf(state: BackendState, group: EpGroupState): EpGroupReport {
  const { world, rank } = group.owner;
  const { ranks } = world.options;
  const { observed } = tables(state, group.shared, ranks);
  return {
    epoch: group.epoch,
    active: group.active.slice(),
    observed: Uint8Array.from(observed.subarray(rank * ranks, (rank + 1) * ranks)),
    reservedContexts: group.contexts.filter((context) => context.graph !== undefined).length,
  };
}

interface Tables {
  readonly epoch: Int32Array;
  readonly active: Int32Array;
  readonly stale: Int32Array;
  readonly observed: Int32Array;
}

function tables(state: BackendState, { address }: SharedEpGroup, ranks: number): Tables {
  const { f64, i32 } = state.arena.space(address);
  const start = offsetOf(address) / 8;
  const table = (word: number, length: number): Int32Array => {
    const at = offsetOf(f64[start + word]!) / 4;
    return i32.subarray(at, at + length);
  };
  return {
    epoch: i32.subarray((start + groupWord.epoch) * 2, (start + groupWord.epoch) * 2 + 1),
    active: table(groupWord.activeAddress, ranks),
    stale: table(groupWord.staleAddress, ranks),
    observed: table(groupWord.observedAddress, ranks * ranks),
  };
}
