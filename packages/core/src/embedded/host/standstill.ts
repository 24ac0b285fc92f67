// SPDX-License-Identifier: Apache-2.0
// Fault injection: how long the host waits for a rank that was told to stand still, so that nothing waits for it for ever.

import { rankWord } from '../control/world-layout.js';
import type { RankState } from './objects.js';

/** Stops a rank's streams and host calls, or lets them go on. */
export function standStill(rank: RankState, stopped: boolean): void {
  rank.world.setRankWord(rank.rank, rankWord.stopped, stopped ? 1 : 0);
  rank.gate.stop(stopped);
  rank.standstill.stop(stopped);
}

/** Watches one rank while it is stopped. */
export class Standstill {
  readonly #timeoutMs: number;
  readonly #isAwaited: () => boolean;
  readonly #giveUp: () => void;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  /** `giveUp` is called when something has waited for the stopped rank for `timeoutMs`. */
  constructor(timeoutMs: number, isAwaited: () => boolean, giveUp: () => void) {
    this.#timeoutMs = timeoutMs;
    this.#isAwaited = isAwaited;
    this.#giveUp = giveUp;
  }

  stop(stopped: boolean): void {
    this.#stopped = stopped;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (stopped && this.#isAwaited()) this.await();
  }

  /** Something begins to wait for the rank. */
  await(): void {
    if (!this.#stopped || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#isAwaited()) this.#giveUp();
    }, this.#timeoutMs);
  }
}
