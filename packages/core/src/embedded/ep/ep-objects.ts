// SPDX-License-Identifier: Apache-2.0
// What the thread that owns a world remembers about groups and handles of expert parallelism.

import type { EpGroupConfig, EpHandleConfig } from '../../contract/index.js';
import type { BufferState, Capture, RankState, StreamState, Uses } from '../host/objects.js';
import type { CallKind } from './ep-words.js';
import type { MemberMeeting } from './member-meeting.js';

/** One rank's end of a group. */
export interface EpGroupState {
  readonly kind: 'epGroup';
  handle: number;
  readonly owner: RankState;
  readonly config: EpGroupConfig;
  readonly shared: SharedEpGroup;
  readonly memory: BufferState;
  /** The handles that are left, and the number of the next one. */
  readonly handles: Set<EpHandleState>;
  nextHandle: number;
  /** As this rank knows them: a rank that was left out keeps the last epoch that it took part in. */
  epoch: number;
  active: Uint8Array;
  readonly contexts: ContextState[];
  /** The context that the next eager operation looks at first. */
  nextContext: number;
  readonly slots: CallSlot[];
  nextSlot: number;
}

/** What the ranks of one group have in common. */
export interface SharedEpGroup {
  readonly address: number;
  /** Ranks that have not disposed it. */
  holders: number;
  readonly groups: readonly EpGroupState[];
  readonly meeting: MemberMeeting;
}

export interface ContextState {
  /** Uses given out in this epoch, by eager operations and by launches of graphs. */
  issued: number;
  /** The graph that has reserved it. */
  graph: Capture | undefined;
  /** The send that keeps it until it is completed. */
  send: OpenSend | undefined;
}

/** Where an eager call's parameters lie until its operation is over. */
export interface CallSlot {
  readonly address: number;
  stream: StreamState | undefined;
  ticket: number;
  /** A send keeps its call until it is completed. */
  held: boolean;
}

export interface OpenSend {
  readonly kind: CallKind;
  readonly context: number;
  /** Where the call lies; in a graph, its number among the calls of the capture. */
  readonly call: number;
  readonly slot: CallSlot | undefined;
  readonly capture: Capture | undefined;
  readonly buffers: ReadonlySet<BufferState>;
}

/** What was enqueued on a handle so far, which says what may come next. */
export interface HandleProgress {
  /** Tokens of the last route, -1 before any. */
  tokens: number;
  dispatched: boolean;
}

export interface EpHandleState {
  readonly kind: 'epHandle';
  handle: number;
  readonly owner: RankState;
  readonly group: EpGroupState;
  readonly config: EpHandleConfig;
  /** The k-th handle of each rank belong together. */
  readonly number: number;
  readonly memory: BufferState;
  /** Addresses of its sections. */
  readonly sections: Readonly<Record<'experts' | 'weights' | 'slots' | 'counts', number>>;
  readonly progress: HandleProgress;
  /** Oldest first. */
  readonly sends: OpenSend[];
  readonly uses: Uses;
  graphs: number;
}

/** What a capture collects about one group. */
export interface CapturedGroup {
  /** The epoch's slot among the parameters of a launch. */
  readonly slot: number;
  /** Uses per launch of each context that the graph has reserved. */
  readonly contexts: Map<number, number>;
  /** Where each handle stands after a launch. */
  readonly progress: Map<EpHandleState, HandleProgress>;
}
