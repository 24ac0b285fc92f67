// SPDX-License-Identifier: Apache-2.0
// What one rank brings to prepareTransfer, checked as far as it can be without the others.

import {
  type ErrorRecord,
  type MoveTable,
  moveLoops,
  type PrepareConfig,
  type TensorBindings,
  type TransferProgram,
} from '../../contract/index.js';
import { errorRecord, isError } from '../host/errors.js';
import type { BufferState, RankState } from '../host/objects.js';
import { type BackendState, foreign } from '../host/state.js';

const op = 'prepareTransfer';

/** Where a tensor lives. */
interface Binding {
  readonly buffer: BufferState;
  readonly byteOffset: number;
}

/** Bindings by tensor; undefined where the rank does not hold it. */
export type Bindings = readonly (Binding | undefined)[];

export interface PreparePart {
  readonly rank: RankState;
  readonly program: TransferProgram;
  readonly sources: Bindings;
  readonly destinations: Bindings;
  readonly verify: boolean;
}

/** A part that is sound by itself, or why it is not. */
export function preparePart(
  state: BackendState,
  rank: RankState,
  config: PrepareConfig,
): PreparePart | ErrorRecord {
  const { program, verify } = config;
  const wrong =
    checkProgram(rank, program, verify) ??
    checkTable(rank, 'sends', program.sends) ??
    (program.receives === undefined ? undefined : checkTable(rank, 'receives', program.receives));
  if (wrong !== undefined) return wrong;
  const sources = resolve(state, rank, 'sources', config.sources);
  if (isError(sources)) return sources;
  const destinations = resolve(state, rank, 'destinations', config.destinations);
  if (isError(destinations)) return destinations;
  return { rank, program, sources, destinations, verify };
}

function checkProgram(rank: RankState, program: TransferProgram, verify: boolean): ErrorRecord | undefined {
  const size = rank.world.options.ranks;
  if (program.rank !== rank.rank)
    return invalid(rank, `the program of rank ${program.rank} was given to rank ${rank.rank}`);
  if (program.size !== size)
    return invalid(rank, `the program is for ${program.size} ranks, the world has ${size}`);
  if (verify && program.receives === undefined)
    return invalid(rank, 'program.receives is missing, which a transfer that verifies needs');
  for (const peer of [...program.receivePeers, ...program.forwardPeers]) {
    if (peer < 0 || peer >= size) return invalid(rank, `peer ${peer} is not a rank of a world of ${size}`);
  }
  return undefined;
}

function checkTable(rank: RankState, name: string, table: MoveTable): ErrorRecord | undefined {
  const { length } = table;
  const { peer, stage, tensor, sourceTensor, sourceOffset, destinationOffset, inner, transform } = table;
  const single = [peer, stage, tensor, sourceTensor, sourceOffset, destinationOffset, inner, transform];
  const looped = [table.counts, table.sourceStrides, table.destinationStrides];
  if (
    single.some((array) => array.length < length) ||
    looped.some((array) => array.length < length * moveLoops)
  )
    return invalid(rank, `program.${name} has arrays shorter than its ${length} moves`);
  const size = rank.world.options.ranks;
  for (let i = 0; i < length; i++) {
    if (peer[i]! < 0 || peer[i]! >= size)
      return invalid(rank, `program.${name} move ${i} has peer ${peer[i]}`);
    if (stage[i]! > 1) return invalid(rank, `program.${name} move ${i} has stage ${stage[i]}`);
    if (i > 0 && isBefore(table, i, i - 1))
      return invalid(rank, `program.${name} is not sorted by stage, peer and tensor at move ${i}`);
  }
  for (const array of [sourceOffset, destinationOffset, inner, ...looped]) {
    const bad = array.findIndex((value) => !Number.isSafeInteger(value) || value < 0);
    if (bad >= 0)
      return invalid(rank, `program.${name} holds ${array[bad]} where a non-negative integer must be`);
  }
  return undefined;
}

function isBefore({ stage, peer, tensor }: MoveTable, a: number, b: number): boolean {
  if (stage[a] !== stage[b]) return stage[a]! < stage[b]!;
  if (peer[a] !== peer[b]) return peer[a]! < peer[b]!;
  return tensor[a]! < tensor[b]!;
}

function resolve(
  state: BackendState,
  rank: RankState,
  name: string,
  bindings: TensorBindings,
): Bindings | ErrorRecord {
  const resolved: (Binding | undefined)[] = [];
  for (let tensor = 0; tensor < bindings.buffer.length; tensor++) {
    const handle = bindings.buffer[tensor]!;
    if (handle === 0) {
      resolved.push(undefined);
      continue;
    }
    const buffer = state.owned('buffer', handle, op);
    if (isError(buffer))
      return { ...buffer, rank: rank.rank, detail: `${name}[${tensor}]: ${buffer.detail}` };
    const wrong = foreign(buffer, rank, op);
    if (wrong !== undefined) return wrong;
    const byteOffset = bindings.byteOffset[tensor] ?? 0;
    if (!Number.isSafeInteger(byteOffset) || byteOffset < 0)
      return invalid(rank, `${name}[${tensor}] has byte offset ${byteOffset}`);
    resolved.push({ buffer, byteOffset });
  }
  return resolved;
}

function invalid(rank: RankState, detail: string): ErrorRecord {
  return errorRecord('ERR_INVALID_ARGUMENT', op, detail, { rank: rank.rank });
}
