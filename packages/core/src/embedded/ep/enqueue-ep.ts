// SPDX-License-Identifier: Apache-2.0
// Puts one operation of expert parallelism on a stream: checks first, then changes everything at once.

import type {
  EpCombineCall,
  EpDispatchCall,
  EpRouteCall,
  ErrorRecord,
  Status,
} from '../../contract/index.js';
import { epLayouts } from '../../contract/index.js';
import { operations } from '../control/records.js';
import { capturedUse } from '../host/capture.js';
import { takeDisagreement } from '../host/collective.js';
import { push, roomFor } from '../host/enqueue.js';
import { errorRecord, isError } from '../host/errors.js';
import type { BufferState, StreamState } from '../host/objects.js';
import { type BackendState, foreign } from '../host/state.js';
import { offsetOf } from '../memory/address.js';
import { CallRanges } from './call-ranges.js';
import { freeCallSlot } from './call-slots.js';
import { isStale } from './change-membership.js';
import { checkCombine, checkDispatch, checkRoute, isLowLatency } from './check-calls.js';
import { capturedGroup, copyOf, findContext, takeContext } from './contexts.js';
import type { CallSlot, EpHandleState } from './ep-objects.js';
import { type CallKind, callKinds, callWord } from './ep-words.js';

/** A handle and a stream of one usable rank. */
interface Target {
  readonly handle: EpHandleState;
  readonly stream: StreamState;
}

export function enqueueRoute(state: BackendState, handle: number, stream: number, call: EpRouteCall): Status {
  return enqueueCall(state, 'route', handle, stream, (object, ranges) => checkRoute(object, call, ranges));
}

export function enqueueDispatch(
  state: BackendState,
  handle: number,
  stream: number,
  call: EpDispatchCall,
): Status {
  return enqueueCall(state, 'dispatch', handle, stream, (object, ranges) =>
    checkDispatch(object, call, ranges),
  );
}

export function enqueueCombine(
  state: BackendState,
  handle: number,
  stream: number,
  call: EpCombineCall,
): Status {
  return enqueueCall(state, 'combine', handle, stream, (object, ranges) =>
    checkCombine(object, call, ranges),
  );
}

export function enqueueComplete(state: BackendState, handleNumber: number, streamHandle: number): Status {
  const target = openTarget(state, 'complete', handleNumber, streamHandle);
  if (isError(target)) return state.refuse(target);
  const { handle, stream } = target;
  const send = handle.sends[0];
  if (send === undefined)
    return state.refuse(
      misplaced(handle, 'complete', 'no send of this handle is open', 'Pass sendOnly first.'),
    );
  if (send.capture !== stream.capture)
    return state.refuse(
      misplaced(
        handle,
        'complete',
        'the oldest open send was not recorded in this graph, or belongs to a graph',
        'Send and complete in the same graph, or both outside of graphs.',
      ),
    );
  const full = roomFor(stream, operations.ep);
  if (full !== undefined) return state.refuse(full);
  handle.sends.shift();
  handle.group.contexts[send.context]!.send = undefined;
  for (const buffer of send.buffers) buffer.groups--;
  const slot = stream.capture === undefined ? -1 : capturedGroup(stream.capture, handle.group).slot;
  push(stream, [operations.ep, send.call, slot, 1, 0]);
  if (send.slot !== undefined) occupy(send.slot, stream, false);
  use(handle, stream, send.buffers);
  return 0;
}

function enqueueCall(
  state: BackendState,
  kind: CallKind,
  handleNumber: number,
  streamHandle: number,
  fill: (handle: EpHandleState, ranges: CallRanges) => void,
): Status {
  const target = openTarget(state, kind, handleNumber, streamHandle);
  if (isError(target)) return state.refuse(target);
  const { handle, stream } = target;
  const { group, owner } = handle;
  const early = outOfOrder(handle, kind);
  if (early !== undefined) return state.refuse(early);
  const words = new Float64Array(callWord.words);
  const ranges = new CallRanges(state, owner, kind, words);
  fill(handle, ranges);
  if (ranges.error !== undefined) return state.refuse(ranges.error);
  const full = roomFor(stream, operations.ep);
  if (full !== undefined) return state.refuse(full);
  const meets = kind !== 'route' || !isLowLatency(handle.config.layout);
  const context = meets ? findContext(group, stream.capture, kind) : -1;
  if (typeof context !== 'number') return state.refuse(context);
  const slot = stream.capture === undefined ? freeCallSlot(group, kind) : undefined;
  if (slot !== undefined && isError(slot)) return state.refuse(slot);
  describe(handle, kind, words);
  words[callWord.falsified] = takeDisagreement(owner, kind) ? 1 : 0;
  words[callWord.context] = context;
  words[callWord.epoch] = group.epoch;
  if (context >= 0) {
    const { ticket, epoch } = takeContext(group, stream.capture, context);
    words[callWord.ticket] = ticket;
    words[callWord.ticketEpoch] = epoch;
  }
  const call = placeCall(state, stream, slot, words);
  const epochSlot = stream.capture === undefined ? -1 : capturedGroup(stream.capture, group).slot;
  push(stream, [operations.ep, call, epochSlot, 0, 0]);
  const sends = words[callWord.sendOnly] === 1;
  if (slot !== undefined) occupy(slot, stream, sends);
  use(handle, stream, ranges.buffers);
  if (sends) keepOpen(handle, kind, stream, context, call, slot, ranges.buffers);
  advance(handle, kind, stream, words[callWord.tokens]!);
  return 0;
}

function openTarget(
  state: BackendState,
  op: string,
  handleNumber: number,
  streamHandle: number,
): Target | ErrorRecord {
  const stream = state.stream(streamHandle, op);
  if (isError(stream)) return stream;
  const handle = state.owned('epHandle', handleNumber, op);
  if (isError(handle)) return handle;
  const wrong = foreign(handle, stream.owner, op);
  if (wrong !== undefined) return wrong;
  if (!isStale(state, handle.group)) return { handle, stream };
  return errorRecord(
    'ERR_MEMBERSHIP',
    op,
    `the group of rank ${stream.owner.rank} waits for a change of its members`,
    {
      rank: stream.owner.rank,
      help: 'Call changeMembership on every rank that is to take part, and route again.',
    },
  );
}

function outOfOrder(handle: EpHandleState, kind: CallKind): ErrorRecord | undefined {
  const { progress, sends } = handle;
  if (kind === 'route' && sends.length > 0)
    return misplaced(handle, kind, `${sends.length} sends of this handle are open`, 'Complete them first.');
  if (kind !== 'route' && progress.tokens < 0)
    return misplaced(
      handle,
      kind,
      'nothing has been routed since the handle was made or the members changed',
      'Route first.',
    );
  if (kind === 'combine' && !progress.dispatched)
    return misplaced(handle, kind, 'nothing has been dispatched since the last route', 'Dispatch first.');
  return undefined;
}

function misplaced(handle: EpHandleState, op: string, detail: string, help: string): ErrorRecord {
  const { rank } = handle.owner;
  return errorRecord('ERR_INVALID_STATE', op, `${op} of rank ${rank} cannot be enqueued: ${detail}`, {
    rank,
    help,
  });
}

function describe(handle: EpHandleState, kind: CallKind, words: Float64Array): void {
  words[callWord.group] = handle.group.shared.address;
  words[callWord.kind] = callKinds.indexOf(kind);
  words[callWord.layout] = epLayouts.indexOf(handle.config.layout);
  words[callWord.handle] = handle.number;
  words[callWord.alignment] = handle.config.alignment;
  words[callWord.experts] = handle.sections.experts;
  words[callWord.weights] = handle.sections.weights;
  words[callWord.slots] = handle.sections.slots;
  words[callWord.counts] = handle.sections.counts;
}

/** The address of the call; while a graph is recorded, its number among the calls of the capture. */
function placeCall(
  state: BackendState,
  stream: StreamState,
  slot: CallSlot | undefined,
  words: Float64Array,
): number {
  if (slot === undefined) return stream.capture!.epCalls.push(words) - 1;
  const { buffer } = state.arena.space(slot.address);
  new Float64Array(buffer, offsetOf(slot.address), callWord.words).set(words);
  return slot.address;
}

/** The slot is taken until the operation just enqueued is over, and longer while `held`. */
function occupy(slot: CallSlot, stream: StreamState, held: boolean): void {
  slot.stream = stream;
  slot.ticket = stream.enqueued;
  slot.held = held;
}

function use(handle: EpHandleState, stream: StreamState, buffers: ReadonlySet<BufferState>): void {
  for (const object of [...buffers, handle]) {
    if (stream.capture === undefined) object.uses.set(stream, stream.enqueued);
    else capturedUse(stream.capture, object);
  }
}

/** What a send brought stays in use until it is completed. */
function keepOpen(
  handle: EpHandleState,
  kind: CallKind,
  stream: StreamState,
  context: number,
  call: number,
  slot: CallSlot | undefined,
  used: ReadonlySet<BufferState>,
): void {
  const { capture } = stream;
  // A graph keeps its buffers anyway.
  const buffers = capture === undefined ? used : new Set<BufferState>();
  for (const buffer of buffers) buffer.groups++;
  const send = { kind, context, call, slot, capture, buffers };
  handle.sends.push(send);
  handle.group.contexts[context]!.send = send;
}

function advance(handle: EpHandleState, kind: CallKind, stream: StreamState, tokens: number): void {
  const { progress } = handle;
  if (kind === 'route') progress.tokens = tokens;
  if (kind !== 'combine') progress.dispatched = kind === 'dispatch';
  if (stream.capture !== undefined)
    capturedGroup(stream.capture, handle.group).progress.set(handle, copyOf(progress));
}
