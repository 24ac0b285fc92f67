// SPDX-License-Identifier: Apache-2.0
// What all calls of one backend share, and the checks that nearly every call begins with.

import type { ErrorRecord, Status } from '../../contract/index.js';
import type { Arena } from '../memory/arena.js';
import { errorRecord, isError } from './errors.js';
import { Handles } from './handles.js';
import type { OwnedState, RankState, StreamState, Uses } from './objects.js';
import type { WorkerPool } from './worker-pool.js';
import type { World } from './world.js';

export class BackendState {
  readonly arena: Arena;
  readonly pool: WorkerPool;
  readonly handles: Handles = new Handles();
  readonly worlds: Set<World> = new Set();
  /** Bytes of live buffers. */
  allocatedBytes = 0;
  lastError: ErrorRecord = errorRecord('ERR_INTERNAL', '', 'no call has failed yet');
  disposed = false;

  constructor(arena: Arena, pool: WorkerPool) {
    this.arena = arena;
    this.pool = pool;
  }

  /** Keeps the record for `lastError()` and returns its number. */
  refuse(error: ErrorRecord): Status {
    this.lastError = error;
    return error.code;
  }

  /** The rank of a handle, unless it is disposed or its world has failed. Poisoned ranks pass. */
  rank(handle: number, op: string): RankState | ErrorRecord {
    const rank = this.handles.get('rank', handle, op);
    if (isError(rank)) return rank;
    if (rank.world.failure !== undefined) return { ...rank.world.failure, op, rank: rank.rank };
    if (rank.disposal === undefined) return rank;
    return errorRecord('ERR_DISPOSED', op, `rank ${rank.rank} is being disposed`, { rank: rank.rank });
  }

  /** An object of a usable rank. */
  owned<Kind extends OwnedState['kind']>(
    kind: Kind,
    handle: number,
    op: string,
  ): Extract<OwnedState, { readonly kind: Kind }> | ErrorRecord {
    const state = this.handles.get(kind, handle, op);
    if (isError(state)) return state;
    const { world, rank } = (state as OwnedState).owner;
    if (world.failure !== undefined) return { ...world.failure, op, rank };
    return state;
  }

  /** A stream that can take work. */
  stream(handle: number, op: string): StreamState | ErrorRecord {
    const stream = this.owned('stream', handle, op);
    if (isError(stream)) return stream;
    return unusable(stream.owner, op) ?? stream;
  }
}

/** Why a rank takes no more work: it is poisoned or being disposed. */
export function unusable(rank: RankState, op: string): ErrorRecord | undefined {
  if (rank.disposal !== undefined)
    return errorRecord('ERR_DISPOSED', op, `rank ${rank.rank} is being disposed`, { rank: rank.rank });
  const reason = rank.world.poisonOf(rank.rank);
  if (reason === undefined) return undefined;
  return errorRecord('ERR_POISONED', op, `rank ${rank.rank} is unusable since: ${reason.detail}`, {
    rank: rank.rank,
    peer: reason.peer,
    help: 'Dispose the ranks and make a new world.',
  });
}

/** An object that another rank owns cannot be used with `owner`'s stream. */
export function foreign(object: OwnedState, owner: RankState, op: string): ErrorRecord | undefined {
  if (object.owner === owner) return undefined;
  return errorRecord(
    'ERR_FOREIGN_OBJECT',
    op,
    `a ${object.kind} of rank ${object.owner.rank} was passed to ${op} on rank ${owner.rank}`,
    { rank: owner.rank, peer: object.owner.rank, help: 'Pass objects of the rank that owns the stream.' },
  );
}

/** A range of a buffer, or the record that says how it does not fit. */
export function checkRange(
  op: string,
  name: string,
  byteOffset: number,
  bytes: number,
  size: number,
): ErrorRecord | undefined {
  for (const [field, value] of [
    [`${name} offset`, byteOffset],
    [`${name} bytes`, bytes],
  ] as const) {
    if (!Number.isSafeInteger(value) || value < 0)
      return errorRecord(
        'ERR_INVALID_ARGUMENT',
        op,
        `${field} is ${value}; it must be a non-negative integer`,
        {
          seen: String(value),
        },
      );
  }
  if (byteOffset + bytes <= size) return undefined;
  return errorRecord(
    'ERR_OUT_OF_BOUNDS',
    op,
    `${name} bytes ${byteOffset} to ${byteOffset + bytes} lie outside a buffer of ${size} bytes`,
    { expected: size, seen: byteOffset + bytes },
  );
}

/** Whether every operation that uses an object has finished. */
export function isIdle(uses: Uses): boolean {
  for (const [stream, ticket] of uses) {
    if (!stream.freed && stream.owner.world.completed(stream) < ticket) return false;
    uses.delete(stream);
  }
  return true;
}
