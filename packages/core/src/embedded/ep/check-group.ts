// SPDX-License-Identifier: Apache-2.0
// Checks what one rank brings to the making of a group, as far as that can be done without the others.

import {
  callBytes,
  contextBytes,
  type EpGroupConfig,
  type EpRange,
  type EpSection,
  type ErrorRecord,
  epAlignment,
  epOverflowPolicies,
  epReductions,
  epReplicaRules,
  maxEpCalls,
  maxTopK,
} from '../../contract/index.js';
import { checkInteger, errorRecord, isError } from '../host/errors.js';
import type { BufferState, RankState } from '../host/objects.js';
import { type BackendState, checkRange, foreign } from '../host/state.js';
import { overlapsReserved } from './reserved-memory.js';

/** Ids and rows are 32-bit integers on devices. */
const maxInt = 2 ** 31 - 1;
const maxContexts = 64;
const maxTimeoutMs = 2 ** 31 - 1;

/** The buffer of the group's memory, or why the configuration is unsound. */
export function checkGroup(
  state: BackendState,
  rank: RankState,
  config: EpGroupConfig,
): BufferState | ErrorRecord {
  const op = 'createEpGroup';
  const { ranks } = rank.world.options;
  const integers: readonly (readonly [string, number, number, number])[] = [
    ['experts', config.experts, 1, maxInt],
    ['topK', config.topK, 1, Math.min(maxTopK, config.experts)],
    ['hidden', config.hidden, 1, maxInt],
    ['dtype', config.dtype, 1, 3],
    ['maxTokensPerRank', config.maxTokensPerRank, 1, maxInt],
    ['receiveBudget', config.receiveBudget, 0, maxInt],
    ['contexts', config.contexts, 1, maxContexts],
    ['timeoutMs', Math.ceil(config.timeoutMs), 1, maxTimeoutMs],
    ['debugFill', config.debugFill, -1, 255],
    ['overflow', epOverflowPolicies.indexOf(config.overflow), 0, epOverflowPolicies.length - 1],
    ['reduction', epReductions.indexOf(config.reduction), 0, epReductions.length - 1],
    ['replicaRule', epReplicaRules.indexOf(config.replicaRule), 0, epReplicaRules.length - 1],
  ];
  for (const [name, value, least, most] of integers) {
    const wrong = checkInteger(op, name, value, least, most);
    if (wrong !== undefined) return { ...wrong, rank: rank.rank };
  }
  const elementBytes = config.dtype === 1 ? 4 : 2;
  if ((config.hidden * elementBytes) % 16 !== 0)
    return invalid(
      rank,
      op,
      `a row of ${config.hidden} elements has ${config.hidden * elementBytes} bytes; rows must be multiples of 16 bytes`,
    );
  const entries = ranks * config.maxTokensPerRank * config.topK;
  if (entries > maxInt)
    return invalid(rank, op, `ranks x maxTokensPerRank x topK is ${entries}; it must be below 2^31`);
  return (
    checkPlacement(rank, op, config, ranks) ??
    sections(rank, op, config.layout.bytes, [
      ['contexts', config.layout.contexts, config.contexts * contextBytes(ranks)],
      ['calls', config.layout.calls, maxEpCalls * callBytes],
    ]) ??
    memoryOf(state, rank, op, config.memory, config.layout.bytes)
  );
}

function checkPlacement(
  rank: RankState,
  op: string,
  { firstPhysical, expertOf, experts }: EpGroupConfig,
  ranks: number,
): ErrorRecord | undefined {
  if (firstPhysical.length !== ranks + 1 || firstPhysical[0] !== 0)
    return invalid(
      rank,
      op,
      `firstPhysical must have ${ranks + 1} entries from 0 on, it has ${firstPhysical.length}`,
    );
  for (let i = 0; i < ranks; i++)
    if (firstPhysical[i + 1]! < firstPhysical[i]!)
      return invalid(rank, op, `firstPhysical falls at rank ${i}`);
  if (expertOf.length !== firstPhysical[ranks])
    return invalid(
      rank,
      op,
      `expertOf has ${expertOf.length} entries for ${firstPhysical[ranks]} physical experts`,
    );
  const bad = expertOf.findIndex((expert) => expert < 0 || expert >= experts);
  if (bad >= 0) return invalid(rank, op, `physical expert ${bad} is a replica of expert ${expertOf[bad]}`);
  const placed = new Uint8Array(experts);
  for (const expert of expertOf) placed[expert] = 1;
  const missing = placed.indexOf(0);
  return missing < 0 ? undefined : invalid(rank, op, `expert ${missing} is placed nowhere`);
}

/** Sections lie inside the memory, apart, and start at multiples of `epAlignment`. */
export function sections(
  rank: RankState,
  op: string,
  bytes: number,
  list: readonly (readonly [name: string, section: EpSection, least: number])[],
): ErrorRecord | undefined {
  const sorted = [...list].sort((a, b) => a[1].byteOffset - b[1].byteOffset);
  for (const [i, [name, section, least]] of sorted.entries()) {
    const { byteOffset } = section;
    if (!Number.isSafeInteger(byteOffset) || byteOffset < 0 || byteOffset % epAlignment !== 0)
      return invalid(
        rank,
        op,
        `section ${name} starts at ${byteOffset}, which must be a multiple of ${epAlignment}`,
      );
    if (section.bytes < least)
      return invalid(rank, op, `section ${name} has ${section.bytes} bytes and needs ${least}`);
    const end = sorted[i + 1]?.[1].byteOffset ?? bytes;
    if (byteOffset + section.bytes > end)
      return invalid(rank, op, `section ${name} ends at ${byteOffset + section.bytes}, beyond ${end}`);
  }
  return undefined;
}

/** The rank's own buffer that holds `bytes` bytes of a range. */
export function memoryOf(
  state: BackendState,
  rank: RankState,
  op: string,
  range: EpRange,
  bytes: number,
): BufferState | ErrorRecord {
  const buffer = state.owned('buffer', range.buffer, op);
  if (isError(buffer)) return { ...buffer, rank: rank.rank };
  const wrong = foreign(buffer, rank, op) ?? checkRange(op, 'memory', range.byteOffset, bytes, buffer.bytes);
  if (wrong !== undefined) return { ...wrong, rank: rank.rank };
  if (range.byteOffset % epAlignment !== 0)
    return invalid(
      rank,
      op,
      `memory starts at byte ${range.byteOffset}, which must be a multiple of ${epAlignment}`,
    );
  const taken = overlapsReserved(rank, op, 'memory', buffer, range.byteOffset, bytes);
  return taken ?? buffer;
}

export function invalid(rank: RankState, op: string, detail: string): ErrorRecord {
  return errorRecord('ERR_INVALID_ARGUMENT', op, detail, { rank: rank.rank });
}
