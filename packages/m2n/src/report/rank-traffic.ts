// SPDX-License-Identifier: Apache-2.0
// How much each rank sends, receives and copies to itself, counted from the moves.

import type { TransferPlan } from '../plan/transfer-plan.js';
import { moveBytes } from '../transfer/move-bytes.js';

/** Bytes by rank. */
export interface RankTraffic {
  readonly sent: Float64Array;
  readonly received: Float64Array;
  readonly local: Float64Array;
}

export function rankTraffic(plan: TransferPlan): RankTraffic {
  const [sent, received, local] = [0, 1, 2].map(() => new Float64Array(plan.worldSize)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  for (let rank = 0; rank < plan.worldSize; rank++) {
    const { sends } = plan.program(rank);
    for (let move = 0; move < sends.length; move++) {
      const bytes = moveBytes(sends, move);
      const peer = sends.peer[move]!;
      if (peer === rank) local[rank]! += bytes;
      else {
        sent[rank]! += bytes;
        received[peer]! += bytes;
      }
    }
  }
  return { sent, received, local };
}
