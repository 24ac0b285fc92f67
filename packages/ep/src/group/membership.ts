// SPDX-License-Identifier: Apache-2.0
// Members of a group as lists of ranks, which people read, and as a byte per rank, which backends take.

import { type Communicator, NcclExtError } from '@nccl-ext/core';
import { describe, requireArray } from '@nccl-ext/core/extend';

export interface EpMembership {
  /** Raised by every change. */
  readonly epoch: number;
  /** The members, ascending. */
  readonly active: readonly number[];
}

/** Ranks whose byte is not 0, ascending. */
export function ranksOf(bytes: Uint8Array): number[] {
  return [...bytes.keys()].filter((rank) => bytes[rank] !== 0);
}

/** 1 per rank of the list; this rank must be in it. */
export function activeBytes(active: readonly number[], { rank, size }: Communicator): Uint8Array {
  requireArray('active', active);
  const bytes = new Uint8Array(size);
  for (const [position, member] of active.entries()) {
    const known = Number.isInteger(member) && (member as number) >= 0 && (member as number) < size;
    if (!known || bytes[member as number] === 1) {
      throw new NcclExtError(
        'ERR_INVALID_ARGUMENT',
        known
          ? `active lists rank ${member} twice.`
          : `active[${position}] must be a rank, 0 to ${size - 1}, got ${describe(member)}.`,
        { rank, field: `active[${position}]`, seen: member },
      );
    }
    bytes[member as number] = 1;
  }
  if (bytes[rank] === 1) return bytes;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `active leaves out rank ${rank}, which calls.`, {
    rank,
    field: 'active',
    help: 'Only ranks that are listed call changeMembership; the others learn of it from ERR_MEMBERSHIP.',
  });
}
