// SPDX-License-Identifier: Apache-2.0
// How a group of expert parallelism lies in shared memory: one region that its ranks share, and one block per call.
//
// The words that ranks wait for are in the shared region, not in the memory that each rank gave: a peer may still look at
// them when this rank has disposed its group.

import { contextBytes } from '../../contract/index.js';

/** 64-bit floats at the start of the shared region; those named Address hold addresses. */
export const groupWord = {
  /** Tells groups apart that lay at the same address one after the other. */
  serial: 0,
  ranks: 1,
  experts: 2,
  topK: 3,
  hidden: 4,
  dtype: 5,
  maxTokens: 6,
  budget: 7,
  overflow: 8,
  reduction: 9,
  contexts: 10,
  timeoutMs: 11,
  mask: 12,
  debugFill: 13,
  replicaRule: 14,
  /** 32-bit integer at twice this element: the epoch of the members. */
  epoch: 15,
  /** Tables of 32-bit integers. */
  firstPhysicalAddress: 16,
  expertOfAddress: 17,
  /** Physical experts by expert, ascending, and where those of each expert start. */
  replicasAddress: 18,
  replicaStartAddress: 19,
  /** Per rank: 1 for members. */
  activeAddress: 20,
  /** Per rank: 1 when the group waits there for a change of membership. */
  staleAddress: 21,
  /** Per pair (waiting, awaited). */
  observedAddress: 22,
  /** 64-bit floats per rank: bytes moved so far. */
  movedAddress: 23,
  contextsAddress: 24,
  words: 32,
} as const;

/** 64-bit words of a context of one rank; each has one writer, the operation that holds the context there. */
export const contextWord = {
  /** Tags: the epoch in the upper half, the number of the use in the lower half. */
  enteredI64: 0,
  verdictI64: 1,
  doneI64: 2,
  /** The last use that ended without being done. */
  abandonedI64: 3,
  /** Uses that ended, in the epoch of the upper half. */
  usesI64: 4,
  /** 32-bit integer at twice this element: 1 + the stream that holds it, 0 for none. */
  holder: 5,
  /** What the rank entered; see `descriptorWord`. */
  descriptor: 8,
  /** Code and three details. */
  verdict: 32,
  /** From here on, in the rank's own context, a copy of each member's descriptor. */
  copies: 64,
} as const;

/** 64-bit floats of a descriptor. */
export const descriptorWord = {
  kind: 0,
  handle: 1,
  layout: 2,
  pass: 3,
  quantization: 4,
  rowBytes: 5,
  scaleBytes: 6,
  tokens: 7,
  experts: 8,
  weights: 9,
  slots: 10,
  tokensAddress: 11,
  scalesAddress: 12,
  gradientsAddress: 13,
  rows: 14,
  /** The rank's own verdict on what it brings. */
  code: 15,
  words: 16,
} as const;

/** What descriptors must agree on, in their order. */
export const agreedNames = [
  'operation',
  'handle',
  'layout',
  'pass',
  'quantization',
  'row bytes',
  'scale bytes',
] as const;

/** Order is the number in descriptors. */
export const callKinds = ['route', 'dispatch', 'combine'] as const;
export type CallKind = (typeof callKinds)[number];

/** An integer output: its address, and the bytes of an entry. */
export interface CounterWords {
  readonly address: number;
  readonly bytes: number;
}

/** 64-bit floats of a call. Addresses are 0 where something is absent. */
export const callWord = {
  group: 0,
  kind: 1,
  layout: 2,
  handle: 3,
  pass: 4,
  quantization: 5,
  /** -1: the call meets nobody. */
  context: 6,
  epoch: 7,
  /** Uses of the context that must have ended before; in `ticketEpoch` only. */
  ticket: 8,
  ticketEpoch: 9,
  sendOnly: 10,
  alignment: 11,
  experts: 12,
  weights: 13,
  slots: 14,
  counts: 15,
  tokens: 16,
  topkIdx: { address: 17, bytes: 18 },
  topkWeights: 19,
  expertCounts: { address: 20, bytes: 21 },
  expertOffsets: { address: 22, bytes: 23 },
  sourceCounts: { address: 24, bytes: 25 },
  total: { address: 26, bytes: 27 },
  demand: { address: 28, bytes: 29 },
  rowBytes: 30,
  outRowBytes: 31,
  scaleBytes: 32,
  tokensAddress: 33,
  scalesAddress: 34,
  outTokens: 35,
  /** Rows of the buffer that is written (dispatch) or read by peers (combine). */
  rows: 36,
  outScales: 37,
  outWeights: 38,
  outTopkIdx: { address: 39, bytes: 40 },
  idsLocal: 41,
  renormalize: 42,
  /** Fault injection: 1 enters another handle than it is. */
  falsified: 43,
  /** Written by the worker, all 0 before: the tag of the use, the verdict and its details, and where the move stands. */
  use: 48,
  code: 49,
  details: 50,
  stage: 53,
  source: 54,
  token: 55,
  /** 1: the use is over. */
  ended: 56,
  words: 64,
} as const;

/** Totals and state after the counts per expert (twice) and per source of a handle; see `EpHandleLayout.counts`. */
export const stateWord = {
  rows: 0,
  demand: 1,
  tokens: 2,
  /** One of `handleStates`. */
  state: 3,
  /** Of the first bad id. */
  token: 4,
  position: 5,
  id: 6,
  epoch: 7,
} as const;

/** `routed`: the ids are known. `planned`: so are the rows that this rank receives. `refused`: ids were bad. */
export const handleStates = ['none', 'routed', 'planned', 'refused'] as const;

type RegionPart =
  | 'header'
  | 'moved'
  | 'contexts'
  | 'firstPhysical'
  | 'expertOf'
  | 'replicas'
  | 'replicaStart'
  | 'active'
  | 'stale'
  | 'observed';

/** Where the parts of a shared region lie, in bytes from its start. */
export interface GroupRegion {
  readonly at: Readonly<Record<RegionPart, number>>;
  readonly bytes: number;
}

export function groupRegion(ranks: number, contexts: number, experts: number, physical: number): GroupRegion {
  const sizes: Readonly<Record<RegionPart, number>> = {
    header: groupWord.words * 8,
    moved: ranks * 8,
    contexts: ranks * contexts * contextBytes(ranks),
    firstPhysical: (ranks + 1) * 4,
    expertOf: physical * 4,
    replicas: physical * 4,
    replicaStart: (experts + 1) * 4,
    active: ranks * 4,
    stale: ranks * 4,
    observed: ranks * ranks * 4,
  };
  let bytes = 0;
  const at = Object.fromEntries(
    Object.entries(sizes).map(([name, size]) => {
      const offset = bytes;
      bytes += Math.ceil(size / 8) * 8;
      return [name, offset];
    }),
  ) as Record<RegionPart, number>;
  return { at, bytes };
}
