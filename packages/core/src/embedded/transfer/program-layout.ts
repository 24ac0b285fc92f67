// SPDX-License-Identifier: Apache-2.0
// How a prepared transfer lies in shared memory: one region that its ranks share, and one program per rank.
//
// Everything is found by byte offsets from a region's address. Numbers are 64-bit floats unless noted.

/** The shared region: counters per rank and per pair. Each word has one writer. */
export interface SharedLayout {
  /** 64-bit integer per receiver: executions that it admitted. */
  readonly grants: number;
  /** 64-bit integer per (sender, receiver, stage): executions whose bytes are in. */
  readonly arrivals: number;
  /** Per rank: bytes that it wrote in all executions so far. */
  readonly written: number;
  /** 32-bit integer per sender: 1 + the receiver that it writes to right now, 0 for none. */
  readonly writing: number;
  /** 32-bit integer per receiver: 1 when its memory must not be written any more. */
  readonly revoked: number;
  readonly bytes: number;
}

export function sharedLayout(ranks: number): SharedLayout {
  const arrivals = ranks * 8;
  const written = arrivals + ranks * ranks * 2 * 8;
  const writing = written + ranks * 8;
  const revoked = writing + ranks * 4;
  return { grants: 0, arrivals, written, writing, revoked, bytes: revoked + ranks * 4 };
}

/** Element of `arrivals` for a pair and stage. */
export function arrivalIndex(ranks: number, sender: number, receiver: number, stage: number): number {
  return (sender * ranks + receiver) * 2 + stage;
}

/** Elements of a program's header; those named Address hold addresses. */
export const header = {
  sharedAddress: 0,
  groupsAddress: 1,
  groups: 2,
  movesAddress: 3,
  checksAddress: 4,
  checks: 5,
  arrivedMovesAddress: 6,
  /** Ranks whose stage-0 bytes come in, and their number; then the same of stage 1. */
  peersAddress: 7,
  peers: 8,
  forwardersAddress: 9,
  forwarders: 10,
  /** 1: hashes are made and compared. */
  verify: 11,
  /** 64-bit integer: executions begun. */
  executionsI64: 12,
  /** Executions that finished without an error. */
  completed: 13,
  /** 32-bit integer at twice this element: 1 + the stream that executes, 0 for none. */
  running: 14,
  words: 16,
} as const;

/** All moves to one peer in one stage. */
export const group = { stage: 0, peer: 1, firstMove: 2, endMove: 3, doneEpoch: 4, words: 5 } as const;

/** What must have arrived from one (sender, stage, tensor): its moves, and where the sender keeps its hash. */
export const check = {
  stage: 0,
  sender: 1,
  tensor: 2,
  firstMove: 3,
  endMove: 4,
  hashAddress: 5,
  words: 6,
} as const;

/** A move with addresses; the last loop is the innermost. */
export const move = {
  source: 0,
  destination: 1,
  inner: 2,
  counts: 3,
  sourceStrides: 6,
  destinationStrides: 9,
  transform: 12,
  /** The hash of its (peer, stage, tensor), 0 when nothing is verified. */
  hashAddress: 13,
  /** 1: the first move of that hash. */
  opensHash: 14,
  words: 15,
} as const;

/** A hash under way: the sum as a 64-bit integer, then the words counted so far. */
export const hashSlot = { sumI64: 0, counted: 1, words: 2 } as const;
