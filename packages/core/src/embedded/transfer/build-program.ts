// SPDX-License-Identifier: Apache-2.0
// Writes one rank's program to shared memory, with addresses instead of tensors and offsets.

import { type MoveTable, moveLoops } from '../../contract/index.js';
import { offsetOf } from '../memory/address.js';
import type { Arena } from '../memory/arena.js';
import { groupKey, hashGroups } from './hash-groups.js';
import { isEmptyMove } from './move-extent.js';
import type { Bindings, PreparePart } from './prepare-part.js';
import { check, group, hashSlot, header, move } from './program-layout.js';

/** Where the senders of a transfer keep their hashes, by {@link groupKey}: in memory that outlives each sender's program. */
type HashAddresses = ReadonlyMap<string, number>;

interface PeerGroup {
  readonly stage: number;
  readonly peer: number;
  readonly firstMove: number;
  readonly endMove: number;
}

/**
 * The address of the program, undefined when the arena has no room. `shared` is the address of the region that all ranks use;
 * `hashes` is empty when nothing is verified.
 */
export function buildProgram(
  arena: Arena,
  part: PreparePart,
  parts: readonly PreparePart[],
  shared: number,
  hashes: HashAddresses,
): number | undefined {
  const { program, verify } = part;
  const { rank } = part.rank;
  const sends = movesOf(program.sends);
  const arrived = verify ? movesOf(program.receives!) : [];
  const sent = verify ? hashGroups(program.sends) : [];
  const checks = verify ? hashGroups(program.receives!) : [];
  const groups = peerGroups(program.sends, sends, rank, program.size);
  const peers = [...program.receivePeers];
  const forwarders = [...program.forwardPeers];

  const regions = [
    header.words,
    groups.length * group.words,
    sends.length * move.words,
    checks.length * check.words,
    arrived.length * move.words,
    peers.length,
    forwarders.length,
  ];
  const address = arena.allocateZeroed(regions.reduce((sum, words) => sum + words, 0) * 8);
  if (address === undefined) return undefined;
  let next = address;
  const [start, groupsAt, movesAt, checksAt, arrivedAt, peersAt, forwardersAt] = regions.map((words) => {
    const at = next;
    next += words * 8;
    return at;
  }) as [number, number, number, number, number, number, number];

  const { f64 } = arena.space(address);
  const element = (at: number): number => offsetOf(at) / 8;
  const fields: readonly (readonly [number, number])[] = [
    [header.sharedAddress, shared],
    [header.groupsAddress, groupsAt],
    [header.groups, groups.length],
    [header.movesAddress, movesAt],
    [header.checksAddress, checksAt],
    [header.checks, checks.length],
    [header.arrivedMovesAddress, arrivedAt],
    [header.peersAddress, peersAt],
    [header.peers, peers.length],
    [header.forwardersAddress, forwardersAt],
    [header.forwarders, forwarders.length],
    [header.verify, verify ? 1 : 0],
  ];
  for (const [field, value] of fields) f64[element(start) + field] = value;
  f64.set(peers, element(peersAt));
  f64.set(forwarders, element(forwardersAt));
  groups.forEach((entry, i) => {
    f64.set(
      [entry.stage, entry.peer, entry.firstMove, entry.endMove, 0],
      element(groupsAt) + i * group.words,
    );
  });
  sends.forEach((index, i) => {
    const from = program.sends.stage[index] === 0 ? part.sources : part.destinations;
    const to = parts[program.sends.peer[index]!]!.destinations;
    writeMove(f64, element(movesAt) + i * move.words, program.sends, index, from, to);
  });
  arrived.forEach((index, i) => {
    writeMove(
      f64,
      element(arrivedAt) + i * move.words,
      program.receives!,
      index,
      undefined,
      part.destinations,
    );
  });
  sent.forEach((entry) => {
    const hash = hashes.get(groupKey(rank, entry.peer, entry.stage, entry.tensor))!;
    for (let at = entry.firstMove; at < entry.endMove; at++)
      f64[element(movesAt) + at * move.words + move.hashAddress] = hash;
    f64[element(movesAt) + entry.firstMove * move.words + move.opensHash] = 1;
  });
  checks.forEach((entry, i) => {
    const hash = hashes.get(groupKey(entry.peer, rank, entry.stage, entry.tensor))!;
    f64.set(
      [entry.stage, entry.peer, entry.tensor, entry.firstMove, entry.endMove, hash],
      element(checksAt) + i * check.words,
    );
  });
  return address;
}

/** Bytes for the hashes of all senders. */
export function hashBytes(parts: readonly PreparePart[]): number {
  return parts.reduce((sum, { program }) => sum + hashGroups(program.sends).length, 0) * hashSlot.words * 8;
}

/** Gives every group of every sender its hash, from `address` on. */
export function placeHashes(parts: readonly PreparePart[], address: number): HashAddresses {
  const addresses = new Map<string, number>();
  for (const [sender, { program }] of parts.entries()) {
    for (const { peer, stage, tensor } of hashGroups(program.sends))
      addresses.set(groupKey(sender, peer, stage, tensor), address + addresses.size * hashSlot.words * 8);
  }
  return addresses;
}

/** Indices of the moves that do something. */
function movesOf(table: MoveTable): readonly number[] {
  const moves: number[] = [];
  for (let index = 0; index < table.length; index++) if (!isEmptyMove(table, index)) moves.push(index);
  return moves;
}

/** Moves by stage and peer: this rank first, then the ranks after it, so that ranks do not all begin with the same peer. */
function peerGroups(
  table: MoveTable,
  moves: readonly number[],
  rank: number,
  size: number,
): readonly PeerGroup[] {
  const groups: PeerGroup[] = [];
  moves.forEach((index, number) => {
    const [stage, peer] = [table.stage[index]!, table.peer[index]!];
    const last = groups.at(-1);
    if (last?.stage === stage && last.peer === peer)
      groups[groups.length - 1] = { ...last, endMove: number + 1 };
    else groups.push({ stage, peer, firstMove: number, endMove: number + 1 });
  });
  const distance = (peer: number): number => (peer - rank + size) % size;
  return groups.sort((a, b) => a.stage - b.stage || distance(a.peer) - distance(b.peer));
}

function writeMove(
  f64: Float64Array,
  at: number,
  table: MoveTable,
  index: number,
  from: Bindings | undefined,
  to: Bindings,
): void {
  const source = from?.[table.sourceTensor[index]!];
  const destination = to[table.tensor[index]!]!;
  f64[at + move.source] =
    source === undefined ? 0 : source.buffer.address + source.byteOffset + table.sourceOffset[index]!;
  f64[at + move.destination] =
    destination.buffer.address + destination.byteOffset + table.destinationOffset[index]!;
  f64[at + move.inner] = table.inner[index]!;
  f64[at + move.transform] = table.transform[index]!;
  for (let loop = 0; loop < moveLoops; loop++) {
    const entry = index * moveLoops + loop;
    f64[at + move.counts + loop] = table.counts[entry]!;
    f64[at + move.sourceStrides + loop] = table.sourceStrides[entry]!;
    f64[at + move.destinationStrides + loop] = table.destinationStrides[entry]!;
  }
}
