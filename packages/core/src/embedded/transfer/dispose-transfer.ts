// SPDX-License-Identifier: Apache-2.0
// Ends a transfer on one rank: waits for its own executions, then makes sure that no peer writes to its memory any more.

import type { TransferState } from '../host/objects.js';
import type { BackendState } from '../host/state.js';
import { offsetOf } from '../memory/address.js';
import { sharedLayout } from './program-layout.js';

/** Frees the rank's part; the last rank frees what all share. */
export async function freeTransferState(state: BackendState, transfer: TransferState): Promise<void> {
  const { world } = transfer.owner;
  await Promise.all([...transfer.uses].map(([stream, ticket]) => world.reached(stream, ticket)));
  await revoke(state, transfer);
  if (!transfer.owner.objects.delete(transfer)) return;
  state.handles.remove(transfer);
  for (const buffer of transfer.buffers) buffer.transfers--;
  state.arena.release(transfer.program);
  transfer.shared.holders--;
  if (transfer.shared.holders === 0) state.arena.release(transfer.shared.address);
}

/**
 * Forbids further writes to this rank's destinations and waits for those under way. Only after a failure is there any: a
 * finished execution has all arrivals. A sender announces each step in `writing` before it looks at `revoked`, so either
 * it sees the revocation, or this sees the announcement. A step takes about a millisecond.
 */
async function revoke(state: BackendState, transfer: TransferState): Promise<void> {
  const { world, rank } = transfer.owner;
  const { ranks } = world.options;
  const layout = sharedLayout(ranks);
  const { address } = transfer.shared;
  const { i32 } = state.arena.space(address);
  const word = (offset: number, index: number): number => (offsetOf(address) + offset) / 4 + index;
  Atomics.store(i32, word(layout.revoked, rank), 1);
  const isWritten = (): boolean => {
    for (let sender = 0; sender < ranks; sender++) {
      if (sender !== rank && Atomics.load(i32, word(layout.writing, sender)) === rank + 1) return true;
    }
    return false;
  };
  while (world.failure === undefined && isWritten()) await new Promise((resolve) => setTimeout(resolve, 1));
}
