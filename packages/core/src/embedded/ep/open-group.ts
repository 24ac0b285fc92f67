// SPDX-License-Identifier: Apache-2.0
// Makes a group on all ranks together: compares what they brought, and writes the region that they share.

import {
  callBytes,
  type EpGroupConfig,
  type EpGroupHandle,
  type ErrorRecord,
  epOverflowPolicies,
  epReductions,
  epReplicaRules,
  maxEpCalls,
  type Outcome,
} from '../../contract/index.js';
import { collective, refuseAll, takeDisagreement } from '../host/collective.js';
import { errorRecord, failed, isError, succeeded } from '../host/errors.js';
import type { BufferState, RankState } from '../host/objects.js';
import type { BackendState } from '../host/state.js';
import { offsetOf } from '../memory/address.js';
import { agreedFields, disagreementIn } from './agreed-fields.js';
import { applyMembers } from './change-membership.js';
import { checkGroup } from './check-group.js';
import type { EpGroupState, SharedEpGroup } from './ep-objects.js';
import { type GroupRegion, groupRegion, groupWord } from './ep-words.js';
import { MemberMeeting } from './member-meeting.js';

const op = 'createEpGroup';

interface GroupPart {
  readonly rank: RankState;
  readonly config: EpGroupConfig;
  readonly memory: BufferState | ErrorRecord;
  readonly fields: ReadonlyMap<string, string>;
}

export async function createGroup(
  state: BackendState,
  handle: number,
  config: EpGroupConfig,
): Promise<Outcome<EpGroupHandle>> {
  const rank = state.rank(handle, op);
  if (isError(rank)) return failed(rank);
  const memory = checkGroup(state, rank, config);
  const fields = isError(memory) ? new Map<string, string>() : new Map(agreedFields(config));
  if (takeDisagreement(rank, op)) fields.set('configuration', 'falsified');
  return collective<GroupPart, EpGroupHandle>(rank, {
    op,
    topic: op,
    agreed: { field: 'call', value: op },
    part: { rank, config, memory, fields },
    finish: (parts) => finish(state, parts),
  });
}

function finish(state: BackendState, parts: readonly GroupPart[]): readonly Outcome<EpGroupHandle>[] {
  const errors = parts.map(({ memory }) => (isError(memory) ? memory : undefined));
  if (errors.some((error) => error !== undefined)) return refuseAll(op, errors);
  const differs = disagreementIn(
    op,
    parts.map(({ fields }) => fields),
  );
  if (differs !== undefined) return parts.map(({ rank }) => failed(differs(rank.rank)));
  const shared = openShared(state, parts[0]!.config, parts.length);
  if (shared === undefined)
    return parts.map(({ rank }) =>
      failed(
        errorRecord('ERR_OUT_OF_MEMORY', op, 'no memory for what the ranks of a group share', {
          rank: rank.rank,
        }),
      ),
    );
  parts[0]!.rank.world.epGroups.add(shared);
  return parts.map((part) => succeeded(addGroup(state, part, shared)));
}

/** While its ranks are added. */
type OpenedGroup = SharedEpGroup & { readonly groups: EpGroupState[] };

let serial = 0;

function openShared(state: BackendState, config: EpGroupConfig, ranks: number): OpenedGroup | undefined {
  const region = groupRegion(ranks, config.contexts, config.experts, config.expertOf.length);
  const address = state.arena.allocateZeroed(region.bytes);
  if (address === undefined) return undefined;
  writeRegion(state, address, region, config, ranks);
  const groups: EpGroupState[] = [];
  const meeting = new MemberMeeting(config.timeoutMs, (active): number =>
    applyMembers(state, shared, active),
  );
  const shared: OpenedGroup = { address, holders: ranks, groups, meeting };
  return shared;
}

function writeRegion(
  state: BackendState,
  address: number,
  region: GroupRegion,
  config: EpGroupConfig,
  ranks: number,
): void {
  const { f64, i32 } = state.arena.space(address);
  const start = offsetOf(address);
  const values: readonly (readonly [number, number])[] = [
    [groupWord.serial, ++serial],
    [groupWord.ranks, ranks],
    [groupWord.experts, config.experts],
    [groupWord.topK, config.topK],
    [groupWord.hidden, config.hidden],
    [groupWord.dtype, config.dtype],
    [groupWord.maxTokens, config.maxTokensPerRank],
    [groupWord.budget, config.receiveBudget],
    [groupWord.overflow, epOverflowPolicies.indexOf(config.overflow)],
    [groupWord.reduction, epReductions.indexOf(config.reduction)],
    [groupWord.contexts, config.contexts],
    [groupWord.timeoutMs, config.timeoutMs],
    [groupWord.mask, config.mask ? 1 : 0],
    [groupWord.debugFill, config.debugFill],
    [groupWord.replicaRule, epReplicaRules.indexOf(config.replicaRule)],
    [groupWord.firstPhysicalAddress, address + region.at.firstPhysical],
    [groupWord.expertOfAddress, address + region.at.expertOf],
    [groupWord.replicasAddress, address + region.at.replicas],
    [groupWord.replicaStartAddress, address + region.at.replicaStart],
    [groupWord.activeAddress, address + region.at.active],
    [groupWord.staleAddress, address + region.at.stale],
    [groupWord.observedAddress, address + region.at.observed],
    [groupWord.movedAddress, address + region.at.moved],
    [groupWord.contextsAddress, address + region.at.contexts],
  ];
  for (const [word, value] of values) f64[start / 8 + word] = value;
  i32[(start / 8 + groupWord.epoch) * 2] = 1;
  const ints = (at: number): number => (start + at) / 4;
  i32.set(config.firstPhysical, ints(region.at.firstPhysical));
  i32.set(config.expertOf, ints(region.at.expertOf));
  i32.fill(1, ints(region.at.active), ints(region.at.active) + ranks);
  const replicas = [...config.expertOf.keys()].sort(
    (a, b) => config.expertOf[a]! - config.expertOf[b]! || a - b,
  );
  i32.set(replicas, ints(region.at.replicas));
  let next = 0;
  for (let expert = 0; expert <= config.experts; expert++) {
    while (next < replicas.length && config.expertOf[replicas[next]!]! < expert) next++;
    i32[ints(region.at.replicaStart) + expert] = next;
  }
}

function addGroup(state: BackendState, part: GroupPart, shared: OpenedGroup): EpGroupHandle {
  const { rank, config } = part;
  const memory = part.memory as BufferState;
  const calls = memory.address + config.memory.byteOffset + config.layout.calls.byteOffset;
  const group: EpGroupState = {
    kind: 'epGroup',
    handle: 0,
    owner: rank,
    config,
    shared,
    memory,
    handles: new Set(),
    nextHandle: 0,
    epoch: 1,
    active: new Uint8Array(rank.world.options.ranks).fill(1),
    contexts: Array.from({ length: config.contexts }, () => ({
      issued: 0,
      graph: undefined,
      send: undefined,
    })),
    nextContext: 0,
    slots: Array.from({ length: maxEpCalls }, (_, slot) => ({
      address: calls + slot * callBytes,
      stream: undefined,
      ticket: 0,
      held: false,
    })),
    nextSlot: 0,
  };
  memory.groups++;
  shared.groups.push(group);
  rank.objects.add(group);
  return state.handles.add(group);
}
