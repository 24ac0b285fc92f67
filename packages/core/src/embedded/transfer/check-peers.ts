// SPDX-License-Identifier: Apache-2.0
// Proves that every rank waits for exactly the ranks that send to it, so that no execution waits for bytes nobody sends.

import type { ErrorRecord } from '../../contract/index.js';
import { errorRecord } from '../host/errors.js';
import { isEmptyMove } from './move-extent.js';
import type { PreparePart } from './prepare-part.js';

/** The first difference between who a rank expects and who sends to it. */
export function checkPeers(parts: readonly PreparePart[]): ErrorRecord | undefined {
  for (const stage of [0, 1] as const) {
    const senders = sendersOf(parts, stage);
    for (const [rank, { program }] of parts.entries()) {
      const expected = new Set(stage === 0 ? program.receivePeers : program.forwardPeers);
      const actual = senders[rank]!;
      const wrong =
        [...expected].find((peer) => !actual.has(peer)) ?? [...actual].find((peer) => !expected.has(peer));
      if (wrong === undefined) continue;
      const text = expected.has(wrong) ? 'expects bytes from' : 'does not expect the bytes of';
      return errorRecord(
        'ERR_DISAGREEMENT',
        'prepareTransfer',
        `rank ${rank} ${text} rank ${wrong} in stage ${stage}`,
        {
          rank,
          peer: wrong,
          help: 'The programs of all ranks must come from one plan.',
        },
      );
    }
  }
  return undefined;
}

/** Ranks that have moves to each rank in a stage, local moves left out. */
function sendersOf(parts: readonly PreparePart[], stage: number): Set<number>[] {
  const senders = parts.map(() => new Set<number>());
  for (const [rank, { program }] of parts.entries()) {
    const { sends } = program;
    for (let move = 0; move < sends.length; move++)
      if (sends.stage[move] === stage && sends.peer[move] !== rank && !isEmptyMove(sends, move))
        senders[sends.peer[move]!]!.add(rank);
  }
  return senders;
}
