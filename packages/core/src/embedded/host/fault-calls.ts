// SPDX-License-Identifier: Apache-2.0
// Fault injection: calls that make a rank late, silent, damaging or wrong.

import type { FaultSpi, RankHandle, Status } from '../../contract/index.js';
import { rankWord } from '../control/world-layout.js';
import { checkInteger, isError } from './errors.js';
import type { RankState } from './objects.js';
import { standStill } from './standstill.js';
import type { BackendState } from './state.js';

/** A day; more is a stop. */
const maxDelayMs = 86_400_000;

export function faultCalls(state: BackendState): FaultSpi {
  const onRank = (handle: RankHandle, op: string, change: (rank: RankState) => void): Status => {
    const rank = state.rank(handle, op);
    if (isError(rank)) return state.refuse(rank);
    change(rank);
    return 0;
  };
  return {
    delayRank(handle, milliseconds) {
      const wrong = checkInteger('delayRank', 'milliseconds', Math.ceil(milliseconds), 0, maxDelayMs);
      if (wrong !== undefined) return state.refuse(wrong);
      return onRank(handle, 'delayRank', ({ world, base, gate }) => {
        world.space.f64[base / 2 + rankWord.delayF64] = milliseconds;
        gate.delay(milliseconds);
        world.wake();
      });
    },

    stopRank: (handle) => onRank(handle, 'stopRank', (rank) => standStill(rank, true)),

    resumeRank: (handle) => onRank(handle, 'resumeRank', (rank) => standStill(rank, false)),

    corruptNextMove: (handle) =>
      onRank(handle, 'corruptNextMove', ({ world, rank }) => world.setRankWord(rank, rankWord.corrupt, 1)),

    disagree: (handle, topic) =>
      onRank(handle, 'disagree', (rank) => {
        rank.disagreeOn = topic;
      }),
  };
}
