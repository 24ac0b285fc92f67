// SPDX-License-Identifier: Apache-2.0
// Fault injection, part of the embedded backend: tests and users see how their program behaves when a rank misbehaves.

import type { Status } from './outcome.js';
import type { RankHandle } from './runtime.js';

export interface FaultSpi {
  /** Every operation of this rank starts `milliseconds` late. 0 ends it. */
  delayRank(rank: RankHandle, milliseconds: number): Status;
  /** The rank's streams stand still and its host calls never arrive, until `resumeRank`. */
  stopRank(rank: RankHandle): Status;
  resumeRank(rank: RankHandle): Status;
  /** Flips one bit of the next move that this rank sends, after it was hashed, so that `verify` must find it. */
  corruptNextMove(rank: RankHandle): Status;
  /** The next exchange whose topic starts with `topic` carries altered bytes for this rank. */
  disagree(rank: RankHandle, topic: string): Status;
}
