// SPDX-License-Identifier: Apache-2.0
// Fault injection for tests and for users who want to see how their program behaves when a rank misbehaves.

import type { FaultSpi } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireText } from '../errors/require-kind.js';
import { describe } from '../mesh/require-integer.js';
import type { Communicator } from '../runtime/communicator.js';

/** `world.faults` of an embedded world. Every method takes the rank that misbehaves. */
export class Faults {
  readonly #spi: FaultSpi;
  readonly #fail: () => NcclExtError;
  readonly #ranks: readonly Communicator[];

  /** @internal Use `world.faults`. */
  constructor(
    backend: { readonly spi: FaultSpi; readonly fail: () => NcclExtError },
    ranks: readonly Communicator[],
  ) {
    this.#spi = backend.spi;
    this.#fail = backend.fail;
    this.#ranks = ranks;
  }

  /** Every operation of the rank starts this much late; 0 ends it. */
  delay(rank: number, milliseconds: number): void {
    if (typeof milliseconds !== 'number' || !(milliseconds >= 0 && milliseconds <= 0x7fff_ffff)) {
      throw new NcclExtError(
        'ERR_INVALID_ARGUMENT',
        `milliseconds must be a number from 0 to 2^31 - 1, not ${describe(milliseconds)}.`,
        { field: 'milliseconds', seen: milliseconds },
      );
    }
    this.#check(this.#spi.delayRank(this.#handle(rank), milliseconds));
  }

  /** The rank stands still: its streams do not run and its collective calls never arrive. */
  stop(rank: number): void {
    this.#check(this.#spi.stopRank(this.#handle(rank)));
  }

  /** Ends {@link stop}. */
  resume(rank: number): void {
    this.#check(this.#spi.resumeRank(this.#handle(rank)));
  }

  /** Flips one bit of the next move that the rank sends, after it was hashed, so that `verify` must find it. */
  corruptNextMove(rank: number): void {
    this.#check(this.#spi.corruptNextMove(this.#handle(rank)));
  }

  /** The rank's next exchange whose topic starts with `topic` carries altered bytes. */
  disagree(rank: number, topic = ''): void {
    requireText('topic', topic);
    this.#check(this.#spi.disagree(this.#handle(rank), topic));
  }

  #check(status: number): void {
    if (status !== 0) throw this.#fail();
  }

  #handle(rank: number): number {
    const communicator = typeof rank === 'number' ? this.#ranks[rank] : undefined;
    if (communicator === undefined) {
      throw new NcclExtError(
        'ERR_INVALID_ARGUMENT',
        `rank must be 0 to ${this.#ranks.length - 1}, not ${describe(rank)}.`,
        {
          field: 'rank',
          seen: rank,
        },
      );
    }
    return communicator.handle;
  }
}
