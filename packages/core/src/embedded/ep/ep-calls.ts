// SPDX-License-Identifier: Apache-2.0
// The ep calls of the backend: groups and handles of expert parallelism, and their operations on streams.

import type { EpSpi } from '../../contract/index.js';
import { isError } from '../host/errors.js';
import type { BackendState } from '../host/state.js';
import { changeMembership, reportOf } from './change-membership.js';
import { disposeGroup, disposeHandle } from './dispose-ep.js';
import { enqueueCombine, enqueueComplete, enqueueDispatch, enqueueRoute } from './enqueue-ep.js';
import { createGroup } from './open-group.js';
import { createHandle } from './open-handle.js';
import { readCounts } from './read-counts.js';

export function epCalls(state: BackendState): EpSpi {
  return {
    createEpGroup: (rank, config) => createGroup(state, rank, config),
    groupState(handle) {
      const group = state.handles.get('epGroup', handle, 'groupState');
      return isError(group)
        ? { epoch: 0, active: new Uint8Array(0), observed: new Uint8Array(0), reservedContexts: 0 }
        : reportOf(state, group);
    },
    changeMembership: (group, active) => changeMembership(state, group, active),
    createEpHandle: (group, config) => createHandle(state, group, config),
    enqueueRoute: (handle, stream, call) => enqueueRoute(state, handle, stream, call),
    enqueueDispatch: (handle, stream, call) => enqueueDispatch(state, handle, stream, call),
    enqueueCombine: (handle, stream, call) => enqueueCombine(state, handle, stream, call),
    enqueueComplete: (handle, stream) => enqueueComplete(state, handle, stream),
    readCounts: (handle) => readCounts(state, handle),
    disposeEpHandle: (handle) => disposeHandle(state, handle),
    disposeEpGroup: (group) => disposeGroup(state, group),
  };
}
