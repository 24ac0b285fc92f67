// SPDX-License-Identifier: Apache-2.0
// Where the shared words of one world lie: the wake counter, what is known about each rank, the table of streams, and the table of
// the worlds that were split from it (a split world has none of its own: all are in the table of the first).
//
// Constants count 32-bit words, those named F64 or I64 count 64-bit words. The thread that owns the world writes what users ask
// for; workers write progress. A word that both write is changed with compare-and-exchange only.

/** Words of the world itself. */
export const worldWord = {
  /** Counts changes that may make something runnable; workers sleep on it. */
  wake: 0,
  /** Workers that may be asleep. */
  sleepers: 1,
  /** 1: workers leave. */
  closing: 2,
  ranks: 3,
  /** Streams of the table that were ever in use. */
  streams: 4,
  /** Entries of the table of split worlds that were ever in use. */
  splits: 5,
  /** 64-bit float: the deadline of every wait for a peer, in milliseconds. */
  timeoutF64: 4,
} as const;

/** Words of a rank, from the start of its entry. */
export const rankWord = {
  /** 1: its streams stand still. */
  stopped: 0,
  /** 1: it was aborted or disposed, peers need not wait for it. */
  lost: 1,
  /** 0 usable, else the error code; set last, when the text is there. */
  poison: 2,
  /** 1: the next move that it sends is damaged. */
  corrupt: 3,
  /** 64-bit float: milliseconds by which its operations start late. */
  delayF64: 2,
  /** 64-bit integer: barriers reached. */
  barriersI64: 3,
  /** Bytes of the error text, and where it starts. */
  textLength: 8,
  /** 1: somebody has begun to poison it, and only that one writes the text. */
  poisonClaim: 9,
  /** Its number in its own world, and in the world that this one was split from in the end. */
  rank: 10,
  origin: 11,
  textStart: 16,
} as const;

/** Words of a stream's entry in the table, one cache line. */
export const streamWord = {
  /** 0 free, else the worker that makes progress on it. */
  lock: 0,
  /** Operations finished, modulo 2^32; workers write it. */
  head: 1,
  /** Operations enqueued, modulo 2^32; the owner writes it. */
  tail: 2,
  /** 1: the owner's thread runs the operation at the head. */
  suspended: 3,
  /** Its rank plus 1; 0 while the entry is unused. */
  owner: 4,
  /** 1: the owner wants a message when `head` reaches `target`. */
  wanted: 5,
  target: 6,
  /** 64-bit float: the address of its ring. */
  ringF64: 4,
} as const;

/** Words of an entry of the table of split worlds. Workers count themselves in before they look at `id`, so nobody visits a closed one. */
export const splitWord = {
  /** 0 closed, else the number of the split world; never used twice. */
  id: 0,
  /** Workers that look at it. */
  visitors: 1,
  /** 64-bit float: the address of its region. */
  regionF64: 1,
} as const;

const splitWords = 4;
const headerWords = 64;
const rankWords = 512;
const streamWords = 16;

/** Bytes of error text, of a rank or a stream. */
export const textBytes: number = (rankWords - rankWord.textStart) * 4;

/** The most streams of one world. */
export const maxStreams = 4096;

/** Word of a rank's entry, from the start of the world's region. */
export function rankEntry(rank: number): number {
  return headerWords + rank * rankWords;
}

/** Word of a stream's entry, from the start of the world's region. */
export function streamEntry(ranks: number, stream: number): number {
  return headerWords + ranks * rankWords + stream * streamWords;
}

/** The most worlds that are split from one, and from those in turn, at a time. */
export const maxSplits = 4096;

/** Word of an entry of the table of split worlds, from the start of the world's region. */
export function splitEntry(ranks: number, split: number): number {
  return streamEntry(ranks, maxStreams) + split * splitWords;
}

/** Bytes of a world's region; `splits` is the size of its table of split worlds. */
export function worldBytes(ranks: number, splits: number): number {
  return splitEntry(ranks, splits) * 4;
}

/** A stream's ring region: progress of the operation at the head, its first error, and 256 records of 64 bytes. Bytes. */
export const ring = {
  progress: 0,
  progressBytes: 256,
  /** Words: 1 when a text is there; its length; the text. */
  error: 256,
  errorText: 264,
  records: 2304,
  bytes: 18_688,
} as const;
