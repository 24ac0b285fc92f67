// SPDX-License-Identifier: Apache-2.0
// Gives contexts to operations in the order in which they are enqueued, which is the same on all ranks.
//
// Eager operations take contexts in turn, those apart that a graph has reserved or an open send keeps. A graph needs as many
// as it has sends open at a time, and one more; it keeps them from its capture until it is freed.

import type { ErrorRecord } from '../../contract/index.js';
import { errorRecord } from '../host/errors.js';
import type { Capture } from '../host/objects.js';
import type { CapturedGroup, EpGroupState, HandleProgress } from './ep-objects.js';

/** The context of the next operation, or why there is none. Nothing changes before `takeContext`. */
export function findContext(
  group: EpGroupState,
  capture: Capture | undefined,
  op: string,
): number | ErrorRecord {
  const { contexts } = group;
  const own = capture?.epGroups.get(group);
  if (own !== undefined) {
    for (const context of own.contexts.keys()) if (contexts[context]!.send === undefined) return context;
  }
  for (let i = 0; i < contexts.length; i++) {
    const context = (group.nextContext + i) % contexts.length;
    const { graph, send } = contexts[context]!;
    if (graph === undefined && send === undefined) return context;
  }
  const reserved = contexts.filter(({ graph }) => graph !== undefined).length;
  const sends = contexts.filter(({ send }) => send !== undefined).length;
  return errorRecord(
    'ERR_CONTEXTS',
    op,
    `none of ${contexts.length} contexts is free on rank ${group.owner.rank}: graphs hold ${reserved}, open sends ${sends}`,
    {
      rank: group.owner.rank,
      expected: contexts.length,
      seen: contexts.length + 1,
      help: 'Complete a send, dispose a graph, or create the group with more contexts.',
    },
  );
}

/** What an operation on a context must wait for, see worker/ep-use.ts. */
export interface Ticket {
  readonly ticket: number;
  readonly epoch: number;
}

/** Takes what `findContext` found. */
export function takeContext(group: EpGroupState, capture: Capture | undefined, context: number): Ticket {
  const state = group.contexts[context]!;
  const { epoch } = group;
  if (capture === undefined) {
    group.nextContext = (context + 1) % group.contexts.length;
    return { ticket: state.issued++, epoch };
  }
  const captured = capturedGroup(capture, group);
  captured.contexts.set(context, (captured.contexts.get(context) ?? 0) + 1);
  // The turn of eager operations stays as it is: a capture that is given up leaves no trace.
  state.graph = capture;
  // Nothing but this graph uses it from now on, so what was given out so far is what comes before.
  return { ticket: state.issued, epoch };
}

/** The group's entry in a capture. */
export function capturedGroup(capture: Capture, group: EpGroupState): CapturedGroup {
  let entry = capture.epGroups.get(group);
  if (entry === undefined) {
    entry = { slot: capture.parameters++, contexts: new Map(), progress: new Map() };
    capture.epGroups.set(group, entry);
  }
  return entry;
}

/** A launch: its uses count, and the handles stand where its operations leave them. */
export function applyLaunch(capture: Capture): void {
  for (const [group, { contexts, progress }] of capture.epGroups) {
    for (const [context, uses] of contexts) group.contexts[context]!.issued += uses;
    for (const [handle, { tokens, dispatched }] of progress) {
      handle.progress.tokens = tokens;
      handle.progress.dispatched = dispatched;
    }
  }
}

export function copyOf({ tokens, dispatched }: HandleProgress): HandleProgress {
  return { tokens, dispatched };
}

/** Sends of a capture that it does not complete. */
export function openSendsOf(capture: Capture): number {
  let open = 0;
  for (const group of capture.epGroups.keys())
    for (const { send } of group.contexts) if (send?.capture === capture) open++;
  return open;
}

/** Gives back the contexts of a capture or of its graph. */
export function releaseContexts(capture: Capture): void {
  for (const group of capture.epGroups.keys()) {
    for (const context of group.contexts) {
      if (context.send?.capture === capture) context.send = undefined;
      if (context.graph === capture) context.graph = undefined;
    }
    for (const handle of group.handles) {
      const kept = handle.sends.filter((send) => send.capture !== capture);
      handle.sends.splice(0, handle.sends.length, ...kept);
    }
  }
}
