// SPDX-License-Identifier: Apache-2.0
// Pairs the hashes of a verified transfer: what a sender counts as one group, and what its receiver checks as one.

import type { ErrorRecord, MoveTable } from '../../contract/index.js';
import { errorRecord } from '../host/errors.js';
import { isEmptyMove } from './move-extent.js';
import type { PreparePart } from './prepare-part.js';

/** Moves of one (stage, peer, tensor), by number among the moves of a table that are not empty. */
interface HashGroup {
  readonly stage: number;
  readonly peer: number;
  readonly tensor: number;
  readonly firstMove: number;
  readonly endMove: number;
}

/** The groups of a sorted table. */
export function hashGroups(table: MoveTable): readonly HashGroup[] {
  const groups: HashGroup[] = [];
  let number = 0;
  for (let move = 0; move < table.length; move++) {
    if (isEmptyMove(table, move)) continue;
    const [stage, peer, tensor] = [table.stage[move]!, table.peer[move]!, table.tensor[move]!];
    const last = groups.at(-1);
    number++;
    if (last?.stage === stage && last.peer === peer && last.tensor === tensor)
      groups[groups.length - 1] = { ...last, endMove: number };
    else groups.push({ stage, peer, tensor, firstMove: number - 1, endMove: number });
  }
  return groups;
}

/** Names a group from the sender's side. */
export function groupKey(sender: number, receiver: number, stage: number, tensor: number): string {
  return `${sender} ${receiver} ${stage} ${tensor}`;
}

/** The first group that only one side knows. */
export function checkHashGroups(parts: readonly PreparePart[]): ErrorRecord | undefined {
  const sent = new Set<string>();
  const received = new Set<string>();
  for (const [rank, { program }] of parts.entries()) {
    for (const { peer, stage, tensor } of hashGroups(program.sends))
      sent.add(groupKey(rank, peer, stage, tensor));
    for (const { peer, stage, tensor } of hashGroups(program.receives!))
      received.add(groupKey(peer, rank, stage, tensor));
  }
  const key =
    [...received].find((group) => !sent.has(group)) ?? [...sent].find((group) => !received.has(group));
  if (key === undefined) return undefined;
  const [sender, receiver, stage, tensor] = key.split(' ').map(Number);
  return errorRecord(
    'ERR_DISAGREEMENT',
    'prepareTransfer',
    `ranks ${sender} and ${receiver} do not agree whether tensor ${tensor} travels between them in stage ${stage}`,
    { rank: receiver!, peer: sender!, help: 'The programs of all ranks must come from one plan.' },
  );
}
