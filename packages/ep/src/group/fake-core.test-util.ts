// SPDX-License-Identifier: Apache-2.0
// A group's core over a backend that only remembers what is enqueued, to test what the classes check and pass on.

import type { Communicator } from '@nccl-ext/core';
import type { EpCombineCall, EpDispatchCall, EpRouteCall, EpSpi } from '@nccl-ext/core/contract';
import { backendOf } from '@nccl-ext/core/extend';
import type { EpConfig } from '../config/ep-config.js';
import { parseConfig } from '../config/parse-config.js';
import { layoutOfSettings } from '../memory/layout-of.js';
import type { GroupCore } from './group-core.js';

export interface Enqueued {
  readonly route: EpRouteCall[];
  readonly dispatch: EpDispatchCall[];
  readonly combine: EpCombineCall[];
  completes: number;
  /** Handles and groups that live. */
  live: number;
  /** The epoch that the group reports. */
  epoch: number;
}

export function fakeCore(
  communicator: Communicator,
  config: EpConfig,
): { readonly core: GroupCore; readonly enqueued: Enqueued } {
  const enqueued: Enqueued = { route: [], dispatch: [], combine: [], completes: 0, live: 1, epoch: 0 };
  const done = { ok: true, value: undefined } as const;
  const ep: Partial<EpSpi> = {
    groupState: () => ({
      epoch: enqueued.epoch,
      active: new Uint8Array(communicator.size).fill(1),
      observed: Uint8Array.from({ length: communicator.size }, (_, rank) => (rank === 1 ? 1 : 0)),
      reservedContexts: 0,
    }),
    changeMembership: async () => ({ ok: true, value: ++enqueued.epoch }),
    createEpHandle: () => ({ ok: true, value: ++enqueued.live }),
    enqueueRoute: (_handle, _stream, call) => enqueued.route.push(call) && 0,
    enqueueDispatch: (_handle, _stream, call) => enqueued.dispatch.push(call) && 0,
    enqueueCombine: (_handle, _stream, call) => enqueued.combine.push(call) && 0,
    enqueueComplete: () => {
      enqueued.completes++;
      return 0;
    },
    disposeEpHandle: async () => {
      enqueued.live--;
      return done;
    },
    disposeEpGroup: async () => {
      enqueued.live--;
      return done;
    },
  };
  const settings = parseConfig(config, communicator.size);
  return {
    enqueued,
    core: {
      communicator,
      runtime: backendOf(communicator).runtime,
      ep: ep as EpSpi,
      handle: 1,
      settings,
      layout: layoutOfSettings(settings),
      memory: config.memory,
      changes: 0,
    },
  };
}

/** A group over {@link fakeCore}. */
export function claimNothing(): {
  range: { buffer: number; byteOffset: number };
  bytes: number;
  owner: 'caller';
  release(): void;
} {
  return { range: { buffer: 0, byteOffset: 0 }, bytes: 0, owner: 'caller', release() {} };
}
