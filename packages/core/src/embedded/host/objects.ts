// SPDX-License-Identifier: Apache-2.0
// What the thread that owns a world remembers about each object behind a handle.

import type { ErrorRecord, MemoryKind, TransferPath } from '../../contract/index.js';
import type { OperationRecord } from '../control/records.js';
import type { CapturedGroup, EpGroupState, EpHandleState } from '../ep/ep-objects.js';
import type { Space } from '../memory/space.js';
import type { ArrivalGate } from './arrival-gate.js';
import type { Standstill } from './standstill.js';
import type { World } from './world.js';

export interface RankState {
  readonly kind: 'rank';
  handle: number;
  readonly world: World;
  readonly rank: number;
  /** First word of its entry. */
  readonly base: number;
  readonly objects: Set<OwnedState>;
  /** The rank that it was split from, and the ranks that were split from it. */
  readonly parent: RankState | undefined;
  readonly children: Set<RankState>;
  /** Lets its collective host calls through, late or not at all while it is delayed or stopped. */
  readonly gate: ArrivalGate;
  readonly standstill: Standstill;
  /** Set once it is being disposed. */
  disposal: Promise<void> | undefined;
  /** Fault injection: the start of the topic whose next exchange it falsifies. */
  disagreeOn: string | undefined;
}

/** The last operation of each stream that uses an object. */
export type Uses = Map<StreamState, number>;

export interface BufferState {
  readonly kind: 'buffer';
  handle: number;
  readonly owner: RankState;
  readonly address: number;
  readonly bytes: number;
  readonly memory: MemoryKind;
  readonly uses: Uses;
  windows: number;
  transfers: number;
  /** Groups and handles of expert parallelism whose memory it is, and sends that are not completed. */
  groups: number;
  graphs: number;
}

export interface WindowState {
  readonly kind: 'window';
  handle: number;
  readonly owner: RankState;
  readonly buffer: BufferState;
  /** Address of every rank's part, by rank. */
  readonly peers: readonly bigint[];
}

export interface StreamState {
  readonly kind: 'stream';
  handle: number;
  readonly owner: RankState;
  readonly slot: number;
  /** First word of its entry. */
  readonly entry: number;
  readonly ringAddress: number;
  readonly ring: Space;
  readonly ringOffset: number;
  /** Operations enqueued so far; the shared word holds it modulo 2^32. */
  enqueued: number;
  readonly waiters: StreamWaiter[];
  capture: Capture | undefined;
  freed: boolean;
  /** The error that nobody had taken when it was freed. */
  leftError: ErrorRecord | undefined;
  /** What a call on the host threw, when that is the stream's error; threads cannot pass it on. */
  cause: unknown;
}

interface StreamWaiter {
  /** Runs `settle` once this many operations have finished. */
  readonly ticket: number;
  readonly settle: () => void;
}

export interface EventState {
  readonly kind: 'event';
  handle: number;
  readonly owner: RankState;
  readonly cell: number;
  readonly space: Space;
  readonly offset: number;
  /** Records enqueued so far. */
  generation: number;
  /** The stream of each of the latest generations, by slot of the cell. */
  readonly recorders: StreamState[];
  readonly uses: Uses;
  graphs: number;
  waiters: { readonly generation: number; readonly settle: () => void }[];
}

/** What a stream records between beginCapture and endCapture. */
export interface Capture {
  readonly nodes: OperationRecord[];
  /** Events by slot, with the number of records so far. */
  readonly events: Map<EventState, { readonly slot: number; records: number }>;
  readonly buffers: Set<BufferState>;
  readonly calls: number[];
  readonly transfers: Set<TransferState>;
  readonly epHandles: Set<EpHandleState>;
  readonly epGroups: Map<EpGroupState, CapturedGroup>;
  /** Parameters of calls of expert parallelism; their records refer to them by number until the graph is made. */
  readonly epCalls: Float64Array[];
  /** Generations and epochs that a launch brings. */
  parameters: number;
}

export interface GraphState {
  readonly kind: 'graph';
  handle: number;
  readonly owner: RankState;
  readonly capture: Capture;
  /** The region, and the address of its records. */
  readonly region: number;
  readonly records: number;
  /** Where launches put the generations of its events and the epochs of its groups; 0 without any. */
  readonly parameters: number;
  /** The launch that uses each set of parameters. */
  readonly launches: { stream: StreamState; ticket: number }[];
  nextLaunch: number;
  readonly uses: Uses;
}

export interface TransferState {
  readonly kind: 'transfer';
  handle: number;
  readonly owner: RankState;
  readonly program: number;
  readonly shared: SharedTransfer;
  readonly paths: readonly TransferPath[];
  readonly buffers: readonly BufferState[];
  readonly uses: Uses;
  graphs: number;
  disposal: Promise<void> | undefined;
}

/** What the ranks of one transfer have in common. */
export interface SharedTransfer {
  readonly address: number;
  /** Ranks that have not disposed it. */
  holders: number;
}

export type OwnedState =
  | BufferState
  | WindowState
  | StreamState
  | EventState
  | GraphState
  | TransferState
  | EpGroupState
  | EpHandleState;
export type ObjectState = RankState | OwnedState;
