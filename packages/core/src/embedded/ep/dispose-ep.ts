// SPDX-License-Identifier: Apache-2.0
// Ends handles and groups of expert parallelism.

import type { ErrorRecord, Outcome } from '../../contract/index.js';
import { errorRecord, failed, isError, succeeded } from '../host/errors.js';
import { type BackendState, isIdle } from '../host/state.js';
import type { EpGroupState, EpHandleState } from './ep-objects.js';

export async function disposeHandle(state: BackendState, handle: number): Promise<Outcome<void>> {
  const object = state.owned('epHandle', handle, 'disposeEpHandle');
  if (isError(object)) return failed(object);
  const { world, rank } = object.owner;
  world.crew.sweep();
  const user =
    object.graphs > 0
      ? 'a graph'
      : object.sends.length > 0
        ? 'an open send'
        : isIdle(object.uses)
          ? undefined
          : 'queued work';
  if (user !== undefined)
    return failed(busy('disposeEpHandle', `${user} of rank ${rank} still uses this handle`, rank));
  freeEpHandle(state, object);
  return succeeded(undefined);
}

export async function disposeGroup(state: BackendState, handle: number): Promise<Outcome<void>> {
  const group = state.owned('epGroup', handle, 'disposeEpGroup');
  if (isError(group)) return failed(group);
  const { rank } = group.owner;
  if (group.handles.size > 0)
    return failed(busy('disposeEpGroup', `${group.handles.size} handles of rank ${rank} are left`, rank));
  freeEpGroup(state, group);
  return succeeded(undefined);
}

/** Frees a handle that nothing uses. */
export function freeEpHandle(state: BackendState, handle: EpHandleState): void {
  for (const send of handle.sends.splice(0)) for (const buffer of send.buffers) buffer.groups--;
  handle.memory.groups--;
  handle.group.handles.delete(handle);
  handle.owner.objects.delete(handle);
  state.handles.remove(handle);
}

/** Frees the rank's end of a group; the last rank frees what all share, since peers may look at it until then. */
export function freeEpGroup(state: BackendState, group: EpGroupState): void {
  const { shared, owner } = group;
  group.memory.groups--;
  owner.objects.delete(group);
  state.handles.remove(group);
  shared.holders--;
  if (shared.holders > 0) return;
  owner.world.epGroups.delete(shared);
  state.arena.release(shared.address);
}

function busy(op: string, detail: string, rank: number): ErrorRecord {
  return errorRecord('ERR_BUSY', op, detail, {
    rank,
    help: 'Dispose graphs and handles first, complete sends, and synchronize the streams that use them.',
  });
}
