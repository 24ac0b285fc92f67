// SPDX-License-Identifier: Apache-2.0
// Which way the bytes of a transfer take: ranks of one process write into each other's memory.

import { type MoveTable, moveLoops, type TransferPath } from '../../contract/index.js';
import { unitBytes } from './move-extent.js';

/** Bytes that a rank gives to others, by rank. */
export type Traffic = ReadonlyMap<number, number>;

/** The paths of `rank`: what it sends, then what it receives, by peer. `traffic` by rank. */
export function pathsOf(traffic: readonly Traffic[], rank: number): readonly TransferPath[] {
  const sends = [...traffic[rank]!].sort(([a], [b]) => a - b);
  const receives = traffic.flatMap((sent, peer) => {
    const bytes = peer === rank ? undefined : sent.get(rank);
    return bytes === undefined ? [] : [[peer, bytes] as const];
  });
  return [
    ...sends.map(([peer, bytes]) => pathOf(peer, 'send', peer === rank ? 'local' : 'mapped', bytes)),
    ...receives.map(([peer, bytes]) => pathOf(peer, 'receive', 'mapped', bytes)),
  ];
}

function pathOf(
  peer: number,
  direction: TransferPath['direction'],
  path: TransferPath['path'],
  bytes: number,
): TransferPath {
  return { peer, direction, path, bytes, why: '' };
}

/** What the moves of a table give to each rank in one execution. */
export function trafficOf(table: MoveTable): Traffic {
  const bytes = new Map<number, number>();
  for (let move = 0; move < table.length; move++) {
    let moved = table.inner[move]! * unitBytes(table.transform[move]!)!.destination;
    for (let loop = 0; loop < moveLoops; loop++) moved *= table.counts[move * moveLoops + loop]!;
    const peer = table.peer[move]!;
    if (moved > 0) bytes.set(peer, (bytes.get(peer) ?? 0) + moved);
  }
  return bytes;
}
