// SPDX-License-Identifier: Apache-2.0
// Makes progress on one strided move: as many runs, or as much of one long run, as the budget allows.

import { castOf } from '../../contract/index.js';
import { offsetOf } from '../memory/address.js';
import type { Space } from '../memory/space.js';
import { hashPiece, wordsOf } from '../transfer/group-hash.js';
import { hashSlot, move } from '../transfer/program-layout.js';
import { castPiece, castSize } from './cast-piece.js';
import { copyPiece } from './copy-piece.js';
import { emptyPiece, type Piece } from './piece.js';
import type { Spaces } from './spaces.js';

/** Where a move stands: the run, and the unit within it. */
interface MoveCursor {
  run: number;
  unit: number;
}

/** Bytes (at the destination) that a step did, its cost, and whether the move is over. */
interface MoveStep {
  readonly bytes: number;
  readonly cost: number;
  readonly over: boolean;
}

const leastBytes = 65_536;
// What is hashed and then copied should still be in the second-level cache.
const hashedBytes = 262_144;
// A run has a cost of its own, however short it is.
const leastRunCost = 16;
const piece = emptyPiece();
const arrived = emptyPiece();

/** Copies or converts, and adds to the move's hash if it has one. Advances `cursor`. */
export function sendMove(
  spaces: Spaces,
  program: Space,
  index: number,
  cursor: MoveCursor,
  budget: number,
): MoveStep {
  const f64 = program.f64;
  const cast = castOf(f64[index + move.transform]!);
  const unitBytes = cast === undefined ? 1 : castSize(cast.to)!;
  const sourceUnit = cast === undefined ? 1 : castSize(cast.from)!;
  const hashAddress = f64[index + move.hashAddress]!;
  const room = hashAddress === 0 ? budget : Math.min(budget, hashedBytes);
  const step = cut(f64, index, cursor, room, unitBytes, sourceUnit);
  if (cast === undefined) {
    if (hashAddress !== 0) addHash(spaces, hashAddress, piece, piece.inner);
    copyPiece(spaces, piece);
  } else {
    castPiece(spaces, piece, cast.from, cast.to);
    if (hashAddress !== 0) addHash(spaces, hashAddress, receivedSide(), piece.inner * unitBytes);
  }
  return step;
}

/**
 * Hashes what a move left in its destination, into the sum at words `sum` and `sum + 1` of `into`; `word` words were hashed before.
 * `index` is a move of the receiver's list.
 */
export function hashMove(
  spaces: Spaces,
  program: Space,
  index: number,
  cursor: MoveCursor,
  budget: number,
  word: number,
  into: Space,
  sum: number,
): MoveStep & { readonly words: number } {
  const f64 = program.f64;
  const cast = castOf(f64[index + move.transform]!);
  const unitBytes = cast === undefined ? 1 : castSize(cast.to)!;
  const step = cut(f64, index, cursor, budget, unitBytes, unitBytes);
  const side = receivedSide();
  side.inner = piece.inner * unitBytes;
  hashPiece(spaces, side, word, into, sum);
  return { ...step, words: wordsOf(side.inner) * piece.count };
}

/** Starts a hash anew. */
export function openHash(spaces: Spaces, hashAddress: number): void {
  const space = spaces.of(hashAddress);
  const slot = offsetOf(hashAddress) / 8;
  space.f64.fill(0, slot, slot + hashSlot.words);
}

function addHash(spaces: Spaces, hashAddress: number, side: Piece, runBytes: number): void {
  const space = spaces.of(hashAddress);
  const slot = offsetOf(hashAddress) / 8;
  const units = side.inner;
  side.inner = runBytes;
  const counted = space.f64[slot + hashSlot.counted]!;
  hashPiece(spaces, side, counted, space, (slot + hashSlot.sumI64) * 2);
  space.f64[slot + hashSlot.counted] = counted + wordsOf(runBytes) * side.count;
  side.inner = units;
}

/** Fills `piece` with what comes next and advances the cursor. */
function cut(
  f64: Float64Array,
  index: number,
  cursor: MoveCursor,
  budget: number,
  unitBytes: number,
  sourceUnit: number,
): MoveStep {
  const inner = f64[index + move.inner]!;
  const c1 = f64[index + move.counts + 1]!;
  const c2 = f64[index + move.counts + 2]!;
  const runs = f64[index + move.counts]! * c1 * c2;
  const room = Math.max(budget, leastBytes);
  const runCost = Math.max(inner * unitBytes, leastRunCost);
  load(f64, index);
  piece.i2 = cursor.run % c2;
  piece.i1 = Math.floor(cursor.run / c2) % c1;
  piece.i0 = Math.floor(cursor.run / (c1 * c2));
  if (runCost <= room && cursor.unit === 0) {
    piece.count = Math.min(runs - cursor.run, Math.floor(room / runCost));
    cursor.run += piece.count;
    return { bytes: piece.count * inner * unitBytes, cost: piece.count * runCost, over: cursor.run === runs };
  }
  // Parts of a run end at whole words of its hash.
  const units = Math.min(inner - cursor.unit, Math.floor(room / unitBytes / 8) * 8);
  piece.source += cursor.unit * sourceUnit;
  piece.destination += cursor.unit * unitBytes;
  piece.inner = units;
  piece.count = 1;
  cursor.unit += units;
  if (cursor.unit === inner) {
    cursor.unit = 0;
    cursor.run++;
  }
  return { bytes: units * unitBytes, cost: units * unitBytes, over: cursor.run === runs };
}

function load(f64: Float64Array, index: number): void {
  piece.source = f64[index + move.source]!;
  piece.destination = f64[index + move.destination]!;
  piece.inner = f64[index + move.inner]!;
  piece.c1 = f64[index + move.counts + 1]!;
  piece.c2 = f64[index + move.counts + 2]!;
  piece.s0 = f64[index + move.sourceStrides]!;
  piece.s1 = f64[index + move.sourceStrides + 1]!;
  piece.s2 = f64[index + move.sourceStrides + 2]!;
  piece.d0 = f64[index + move.destinationStrides]!;
  piece.d1 = f64[index + move.destinationStrides + 1]!;
  piece.d2 = f64[index + move.destinationStrides + 2]!;
}

/** The destination of `piece` as the source of a hash. */
function receivedSide(): Piece {
  Object.assign(arrived, piece);
  arrived.source = piece.destination;
  arrived.s0 = piece.d0;
  arrived.s1 = piece.d1;
  arrived.s2 = piece.d2;
  return arrived;
}
