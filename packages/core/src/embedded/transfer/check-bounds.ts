// SPDX-License-Identifier: Apache-2.0
// Proves that every move of every rank stays inside the buffers that the tensors were bound to.

import type { ErrorRecord, MoveTable } from '../../contract/index.js';
import { errorRecord } from '../host/errors.js';
import { extentOf, isEmptyMove, unitBytes } from './move-extent.js';
import type { Bindings, PreparePart } from './prepare-part.js';

const op = 'prepareTransfer';

/** One side of a move: whose tensor, and from where to where. */
interface Side {
  readonly role: 'source' | 'destination';
  readonly owner: number;
  readonly tensor: number;
  readonly bindings: Bindings;
  readonly offset: number;
  readonly extent: number;
}

/** The first move that `part`'s rank sends or verifies and that leaves a buffer, its own or a peer's. */
export function checkBounds(part: PreparePart, parts: readonly PreparePart[]): ErrorRecord | undefined {
  const { sends, receives } = part.program;
  const wrong = firstOutside(part, sends, (move) => [
    sourceSide(part, sends, move),
    destinationSide(parts[sends.peer[move]!]!, sends, move),
  ]);
  if (wrong !== undefined || !part.verify || receives === undefined) return wrong;
  return firstOutside(part, receives, (move) => [destinationSide(part, receives, move)]);
}

function firstOutside(
  part: PreparePart,
  table: MoveTable,
  sidesOf: (move: number) => readonly Side[],
): ErrorRecord | undefined {
  const { rank } = part.rank;
  for (let move = 0; move < table.length; move++) {
    if (isEmptyMove(table, move)) continue;
    const transform = table.transform[move]!;
    if (unitBytes(transform) === undefined)
      return errorRecord('ERR_INVALID_ARGUMENT', op, `move ${move} has the unknown transform ${transform}`, {
        rank,
      });
    for (const side of sidesOf(move)) {
      const wrong = outside(rank, side);
      if (wrong !== undefined) return wrong;
    }
  }
  return undefined;
}

function sourceSide(part: PreparePart, table: MoveTable, move: number): Side {
  // Stage 1 forwards what arrived in this rank's destinations.
  const first = table.stage[move] === 0;
  return {
    role: first ? 'source' : 'destination',
    owner: part.rank.rank,
    tensor: table.sourceTensor[move]!,
    bindings: first ? part.sources : part.destinations,
    offset: table.sourceOffset[move]!,
    extent: extentOf(table, move, table.sourceStrides, unitBytes(table.transform[move]!)!.source),
  };
}

function destinationSide(owner: PreparePart, table: MoveTable, move: number): Side {
  return {
    role: 'destination',
    owner: owner.rank.rank,
    tensor: table.tensor[move]!,
    bindings: owner.destinations,
    offset: table.destinationOffset[move]!,
    extent: extentOf(table, move, table.destinationStrides, unitBytes(table.transform[move]!)!.destination),
  };
}

function outside(rank: number, side: Side): ErrorRecord | undefined {
  const { role, owner, tensor, bindings, offset, extent } = side;
  const binding = bindings[tensor];
  if (binding === undefined)
    return errorRecord('ERR_INVALID_ARGUMENT', op, `rank ${owner} binds no ${role} for tensor ${tensor}`, {
      rank,
      peer: owner,
      help: `Bind a buffer to ${role} tensor ${tensor} on rank ${owner}.`,
    });
  const end = binding.byteOffset + offset + extent;
  if (end <= binding.buffer.bytes) return undefined;
  return errorRecord(
    'ERR_OUT_OF_BOUNDS',
    op,
    `${role} tensor ${tensor} on rank ${owner} needs ${end} bytes of a buffer of ${binding.buffer.bytes}`,
    { rank, peer: owner, expected: binding.buffer.bytes, seen: end },
  );
}
