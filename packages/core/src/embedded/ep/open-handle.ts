// SPDX-License-Identifier: Apache-2.0
// Makes one rank's end of a handle, in memory that the caller gives.

import {
  type EpHandleConfig,
  type EpHandleHandle,
  type ErrorRecord,
  epLayouts,
  type Outcome,
} from '../../contract/index.js';
import { checkInteger, failed, isError, succeeded } from '../host/errors.js';
import { type BackendState, unusable } from '../host/state.js';
import { offsetOf } from '../memory/address.js';
import { bytesAt } from '../memory/space.js';
import { invalid, memoryOf, sections } from './check-group.js';
import type { EpGroupState, EpHandleState } from './ep-objects.js';

const op = 'createEpHandle';

export function createHandle(
  state: BackendState,
  groupHandle: number,
  config: EpHandleConfig,
): Outcome<EpHandleHandle> {
  const group = state.owned('epGroup', groupHandle, op);
  if (isError(group)) return failed(group);
  const { owner } = group;
  const wrong = unusable(owner, op) ?? checkConfig(group, config);
  if (wrong !== undefined) return failed(wrong);
  const memory = memoryOf(state, owner, op, config.memory, config.sections.bytes);
  if (isError(memory)) return failed(memory);
  const start = memory.address + config.memory.byteOffset;
  const { experts, weights, slots, counts } = config.sections;
  const handle: EpHandleState = {
    kind: 'epHandle',
    handle: 0,
    owner,
    group,
    config,
    number: group.nextHandle++,
    memory,
    sections: {
      experts: start + experts.byteOffset,
      weights: start + weights.byteOffset,
      slots: start + slots.byteOffset,
      counts: start + counts.byteOffset,
    },
    progress: { tokens: -1, dispatched: false },
    sends: [],
    uses: new Map(),
    graphs: 0,
  };
  // Nothing has been routed: the state among the counts says so.
  bytesAt(state.arena.space(start), offsetOf(handle.sections.counts), countsBytes(group)).fill(0);
  memory.groups++;
  group.handles.add(handle);
  owner.objects.add(handle);
  return succeeded(state.handles.add(handle));
}

/** Physical experts of the group's rank. */
export function localExperts({ config, owner }: EpGroupState): number {
  return config.firstPhysical[owner.rank + 1]! - config.firstPhysical[owner.rank]!;
}

/** Bytes of the counts of a handle. */
export function countsBytes(group: EpGroupState): number {
  return (2 * localExperts(group) + group.owner.world.options.ranks + 8) * 8;
}

function checkConfig(group: EpGroupState, config: EpHandleConfig): ErrorRecord | undefined {
  const { owner } = group;
  const { maxTokensPerRank, topK } = group.config;
  const { ranks } = owner.world.options;
  if (!epLayouts.includes(config.layout)) return invalid(owner, op, `${config.layout} is no layout`);
  const wrong = checkInteger(op, 'alignment', config.alignment, 1, 2 ** 20);
  if (wrong !== undefined) return { ...wrong, rank: owner.rank };
  if ((config.alignment & (config.alignment - 1)) !== 0)
    return invalid(owner, op, `alignment is ${config.alignment}; it must be a power of two`);
  if (config.layout !== 'packed' && config.alignment !== 1)
    return invalid(owner, op, `alignment is ${config.alignment}; only packed rows are aligned`);
  const entries = maxTokensPerRank * topK * 4;
  return sections(owner, op, config.sections.bytes, [
    ['experts', config.sections.experts, entries],
    ['weights', config.sections.weights, entries],
    ['slots', config.sections.slots, ranks * entries],
    ['counts', config.sections.counts, countsBytes(group)],
  ]);
}
