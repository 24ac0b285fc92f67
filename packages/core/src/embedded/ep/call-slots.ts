// SPDX-License-Identifier: Apache-2.0
// Finds room for the parameters of an eager call in the memory of its group.

import { type ErrorRecord, maxEpCalls } from '../../contract/index.js';
import { errorRecord } from '../host/errors.js';
import type { CallSlot, EpGroupState } from './ep-objects.js';

/** A slot whose last call is over, or the record that says that there is none. */
export function freeCallSlot(group: EpGroupState, op: string): CallSlot | ErrorRecord {
  for (let i = 0; i < maxEpCalls; i++) {
    const index = (group.nextSlot + i) % maxEpCalls;
    const slot = group.slots[index]!;
    if (!isFree(slot)) continue;
    group.nextSlot = (index + 1) % maxEpCalls;
    return slot;
  }
  return errorRecord(
    'ERR_QUEUE_FULL',
    op,
    `the group already holds ${maxEpCalls} unfinished calls of rank ${group.owner.rank}`,
    {
      rank: group.owner.rank,
      expected: maxEpCalls,
      seen: maxEpCalls + 1,
      help: 'Await synchronize() first.',
    },
  );
}

function isFree({ stream, ticket, held }: CallSlot): boolean {
  if (held) return false;
  return stream === undefined || stream.freed || stream.owner.world.completed(stream) >= ticket;
}
