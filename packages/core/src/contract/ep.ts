// SPDX-License-Identifier: Apache-2.0
// The ep part of the backend contract: routing, dispatch and combine of Mixture-of-Experts tokens, on plain data.
//
// Terms: B tokens of a rank, K top-k, R ranks, M most tokens per rank, L local experts, N received rows.
//
// Protocol of one operation, for every backend (design, section 2 and section 6):
//  - Operations that meet peers (dispatch, combine, and route of a high-throughput handle) each use one context. Contexts are given out when
//    an operation is enqueued: eager ones in turn from those that no graph holds, those of a graph from the ones that it reserved when it was
//    recorded. Ranks enqueue in the same order, so they agree. Tags count the uses of one context on the device; nothing of them is in a graph.
//  - A rank enters, sees that all members entered the same operation, gives its verdict, and moves nothing before every member's verdict is
//    good. After a bad verdict every rank drains, reports and stays usable.
//  - A rank is done when its outputs are written and nobody reads its inputs any more.
//  - A member that does not come in time: ERR_TIMEOUT naming it. With `mask` the group (not the rank) waits for `changeMembership`; without, the
//    rank is poisoned.

import type { Outcome, Status } from './outcome.js';
import type { BufferHandle, RankHandle, StreamHandle } from './runtime.js';

export type EpGroupHandle = number;
export type EpHandleHandle = number;

/** Order is the number that records carry. The first two are low latency, the others high throughput. */
export const epLayouts = ['expert-major', 'rank-major', 'flat', 'packed'] as const;
export type EpLayout = (typeof epLayouts)[number];

/** What becomes of rows beyond the receive budget. */
export const epOverflowPolicies = ['error', 'drop-by-source', 'drop-by-weight'] as const;
export type EpOverflow = (typeof epOverflowPolicies)[number];

/** `rank`: one rounding per rank, then one in the end. `token`: one rounding over all top-k terms. */
export const epReductions = ['rank', 'token'] as const;
export type EpReduction = (typeof epReductions)[number];

/** Which replica of an expert a token goes to: (source rank + token) modulo replicas, or a replica on the source rank if there is one. */
export const epReplicaRules = ['by-token', 'local-first'] as const;
export type EpReplicaRule = (typeof epReplicaRules)[number];

/**
 * How rows change on their way. `forward`: bytes and scales as they are. `fp8`: f8e4m3 with one f32 scale per 128 channels. `fp8-pow2`: the same with
 * scales that are powers of two. `mxfp8`: f8e4m3 with one e8m0 scale (a byte) per 32 channels.
 */
export const epQuantizations = ['none', 'forward', 'fp8', 'fp8-pow2', 'mxfp8'] as const;
export type EpQuantization = (typeof epQuantizations)[number];

/** Low latency: where a row that several experts of a rank want is copied. The bytes are the same. */
export const epExpansions = ['auto', 'sender', 'receiver'] as const;
export type EpExpansion = (typeof epExpansions)[number];

export const epPasses = ['forward', 'backward'] as const;
export type EpPass = (typeof epPasses)[number];

/** The most top-k entries of a token. */
export const maxTopK = 32;

/** The most calls of a rank in one group that are enqueued and not finished, those of graphs apart. */
export const maxEpCalls = 1024;

/** Bytes of a call's parameters in group memory. */
export const callBytes = 512;

/** Bytes of one context on one rank: 512 of its own (tags, descriptor, verdict, progress), and a line of 128 that belongs to each rank. */
export function contextBytes(ranks: number): number {
  return 512 + 128 * ranks;
}

/** Sections of group and handle memory, and group and handle memory themselves, start at multiples of this. */
export const epAlignment = 256;

/** Bytes inside a buffer of the rank; buffer 0 is absent. */
export interface EpRange {
  readonly buffer: BufferHandle;
  readonly byteOffset: number;
}

export const absentRange: EpRange = { buffer: 0, byteOffset: 0 };

/** Where things lie in the memory of a group or a handle: `layoutOf` of @nccl-ext/ep computes it, backends check it. */
export interface EpSection {
  readonly byteOffset: number;
  readonly bytes: number;
}

/** Sections of the group's memory on each rank; `bytes` is the end of the last section. */
export interface EpGroupLayout {
  readonly bytes: number;
  /** Tags, descriptors and verdicts: `contextBytes(R)` for each context. */
  readonly contexts: EpSection;
  /** Parameters of enqueued calls: `maxEpCalls` of `callBytes`. */
  readonly calls: EpSection;
}

/** Sections of a handle's memory on each rank. */
export interface EpHandleLayout {
  readonly bytes: number;
  /** i32 [M, K]: physical experts of the snapshot, -1 where not routed. */
  readonly experts: EpSection;
  /** f32 [M, K]: weights that were dispatched. */
  readonly weights: EpSection;
  /** i32 [R, M, K]: the row of this rank's outputs that (source, token, k) got; -1: none. */
  readonly slots: EpSection;
  /**
   * i64 [L + L + R + 8]: rows and first row per local expert, rows per source, totals and state. L is that of the rank with the most local
   * experts, so that sections lie alike on all ranks.
   */
  readonly counts: EpSection;
}

export interface EpGroupConfig {
  /** Canonical JSON of everything that ranks must agree on; a difference is ERR_DISAGREEMENT naming ranks and field. */
  readonly agreed: string;
  /** Number of experts that ids name. */
  readonly experts: number;
  /** First physical expert of each rank, R + 1 entries. Physical experts count through the ranks. */
  readonly firstPhysical: Int32Array;
  /** The expert that each physical expert is a replica of. */
  readonly expertOf: Int32Array;
  readonly replicaRule: EpReplicaRule;
  readonly topK: number;
  /** Elements of a token row. */
  readonly hidden: number;
  /** Code of f32, f16 or bf16. */
  readonly dtype: number;
  readonly maxTokensPerRank: number;
  /** Rows that a rank receives at most in the high-throughput layouts; 0: the caller's buffers decide (eager). */
  readonly receiveBudget: number;
  readonly overflow: EpOverflow;
  readonly reduction: EpReduction;
  readonly expand: EpExpansion;
  /** SMs that one operation takes at most; 0: the backend chooses. */
  readonly sms: number;
  readonly contexts: number;
  readonly timeoutMs: number;
  readonly mask: boolean;
  /** Byte that fills rows which nobody writes, -1: they stay as they are. */
  readonly debugFill: number;
  readonly layout: EpGroupLayout;
  readonly memory: EpRange;
}

export interface EpHandleConfig {
  readonly layout: EpLayout;
  /** Packed: zones start at and are padded to multiples of this many rows; 1 elsewhere. */
  readonly alignment: number;
  readonly memory: EpRange;
  readonly sections: EpHandleLayout;
}

/** An integer output: 4 or 8 bytes per entry. */
export interface EpCounter extends EpRange {
  readonly entryBytes: 4 | 8;
}

export interface EpRouteCall {
  /** B, 0 to M. */
  readonly tokens: number;
  /** i32 or i64 [B, K]; -1 is not routed. */
  readonly topkIdx: EpCounter;
  /** f32 [B, K]; what drop-by-weight looks at. */
  readonly topkWeights: EpRange;
  /** High throughput. [L]: rows per local expert, padded in `packed`. */
  readonly expertCounts: EpCounter;
  /** Packed. [L]: first row of each zone. */
  readonly expertOffsets: EpCounter;
  /** [R]: rows per source. */
  readonly sourceCounts: EpCounter;
  /** [1]: received rows N, padding included. */
  readonly total: EpCounter;
  /** [1]: rows that would have been received without a budget. */
  readonly demand: EpCounter;
}

export interface EpDispatchCall {
  readonly pass: EpPass;
  readonly quantization: EpQuantization;
  /** Bytes of an input row, of an output row, and of the scales of an output row. */
  readonly rowBytes: number;
  readonly outRowBytes: number;
  readonly scaleBytes: number;
  readonly tokens: EpRange;
  readonly topkWeights: EpRange;
  readonly scales: EpRange;
  readonly outTokens: EpRange;
  /** Rows that `outTokens` holds. */
  readonly outRows: number;
  readonly outScales: EpRange;
  /** rank-major f32 [R, M, K], flat f32 [N, K], packed f32 [N]. */
  readonly outWeights: EpRange;
  /** rank-major [R, M, K], flat [N, K]: experts of this rank in top-k order, then -1. */
  readonly outTopkIdx: EpCounter;
  /** Ids count within this rank, or are those that were routed. */
  readonly idsLocal: boolean;
  /** Low latency. [L]: rows per local expert. */
  readonly expertCounts: EpCounter;
  /** Low latency. [R]: rows per source. */
  readonly sourceCounts: EpCounter;
  /** Weights become w / (sum of the token's live w). */
  readonly renormalize: boolean;
  /** Low latency: leaves waiting to `complete`. */
  readonly sendOnly: boolean;
}

export interface EpCombineCall {
  readonly pass: EpPass;
  /** `none` or `fp8` (payloads pass as f8e4m3 with one f32 scale per 128 channels). */
  readonly quantization: EpQuantization;
  /** Rows of the layout, in the group's dtype. */
  readonly tokens: EpRange;
  /** Rows that `tokens` holds. */
  readonly rows: number;
  /** Backward: gradients of the weights, flat f32 [N, K], packed f32 [N]. */
  readonly topkWeights: EpRange;
  /** [B, H]. */
  readonly outTokens: EpRange;
  /** Backward: f32 [B, K]. */
  readonly outWeights: EpRange;
  readonly sendOnly: boolean;
}

/** What the last route (high throughput) or dispatch (low latency) of a handle found on this rank. */
export interface EpCounts {
  /** Received rows, padding included. */
  readonly rows: number;
  /** Rows without a budget. */
  readonly demand: number;
  /** [L] rows per local expert, without padding. */
  readonly perExpert: Float64Array;
  /** [L] first row of each local expert in the layout. */
  readonly firstRow: Float64Array;
  /** [R]. */
  readonly perSource: Float64Array;
}

export interface EpGroupState {
  /** Raised by every change of membership. */
  readonly epoch: number;
  /** 1 for members. */
  readonly active: Uint8Array;
  /** 1 for ranks that an operation of this rank waited for in vain since the last change. */
  readonly observed: Uint8Array;
  /** Contexts that graphs have reserved. */
  readonly reservedContexts: number;
}

export interface EpSpi {
  /** Collective. Compares `agreed`, exchanges where group memory lies. */
  createEpGroup(rank: RankHandle, config: EpGroupConfig): Promise<Outcome<EpGroupHandle>>;
  groupState(group: EpGroupHandle): EpGroupState;
  /**
   * Collective among `active` ranks (1 for members), each of which passes the same: a new epoch in which only they take part. Ends what is in
   * flight with ERR_MEMBERSHIP, starts all tags anew. ERR_TIMEOUT names who did not come, and the group stays as it was.
   */
  changeMembership(group: EpGroupHandle, active: Uint8Array): Promise<Outcome<number>>;
  /** Not collective; the k-th handle of each rank belong together. */
  createEpHandle(group: EpGroupHandle, config: EpHandleConfig): Outcome<EpHandleHandle>;
  enqueueRoute(handle: EpHandleHandle, stream: StreamHandle, call: EpRouteCall): Status;
  enqueueDispatch(handle: EpHandleHandle, stream: StreamHandle, call: EpDispatchCall): Status;
  enqueueCombine(handle: EpHandleHandle, stream: StreamHandle, call: EpCombineCall): Status;
  /** Ends the oldest `sendOnly` operation of the handle that has not been completed. */
  enqueueComplete(handle: EpHandleHandle, stream: StreamHandle): Status;
  /** Waits for what was enqueued on the handle before. */
  readCounts(handle: EpHandleHandle): Promise<Outcome<EpCounts>>;
  /** ERR_BUSY while work or a graph uses it. */
  disposeEpHandle(handle: EpHandleHandle): Promise<Outcome<void>>;
  disposeEpGroup(group: EpGroupHandle): Promise<Outcome<void>>;
}
