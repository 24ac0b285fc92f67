// SPDX-License-Identifier: Apache-2.0
// Hands out what the last route or dispatch of a handle counted, once it is done.

import type { EpCounts, Outcome } from '../../contract/index.js';
import { errorRecord, failed, isError, succeeded } from '../host/errors.js';
import type { BackendState } from '../host/state.js';
import { offsetOf } from '../memory/address.js';
import { handleStates, stateWord } from './ep-words.js';
import { countsBytes, localExperts } from './open-handle.js';

const op = 'readCounts';

export async function readCounts(state: BackendState, handleNumber: number): Promise<Outcome<EpCounts>> {
  const handle = state.owned('epHandle', handleNumber, op);
  if (isError(handle)) return failed(handle);
  const { world, rank } = handle.owner;
  await Promise.all([...handle.uses].map(([stream, ticket]) => world.reached(stream, ticket)));
  const now = state.owned('epHandle', handleNumber, op);
  if (isError(now)) return failed(now);
  const reason = world.poisonOf(rank);
  if (reason !== undefined) return failed({ ...reason, op });
  const address = handle.sections.counts;
  const words = new Int32Array(
    state.arena.space(address).buffer,
    offsetOf(address),
    countsBytes(handle.group) / 4,
  );
  const experts = localExperts(handle.group);
  const { ranks } = world.options;
  const list = (first: number, length: number): Float64Array =>
    Float64Array.from({ length }, (_, i) => words[(first + i) * 2]!);
  const stateOf = (word: number): number => words[(2 * experts + ranks + word) * 2]!;
  if (handleStates[stateOf(stateWord.state)] !== 'planned' || stateOf(stateWord.epoch) !== handle.group.epoch)
    return failed(
      errorRecord(
        'ERR_INVALID_STATE',
        op,
        `the handle of rank ${rank} has no counts: nothing was received since the last route`,
        {
          rank,
          help: 'Route (and dispatch, in a low-latency layout) first; if that failed, synchronize its stream for the reason.',
        },
      ),
    );
  return succeeded({
    rows: stateOf(stateWord.rows),
    demand: stateOf(stateWord.demand),
    perExpert: list(0, experts),
    firstRow: list(experts, experts),
    perSource: list(2 * experts, ranks),
  });
}
