// SPDX-License-Identifier: Apache-2.0
// Calls that record and launch graphs. A graph is a region of records; its launches carry the generations of its events.

import type { ErrorRecord, GraphHandle, Outcome, RuntimeSpi } from '../../contract/index.js';
import { callBytes } from '../../contract/index.js';
import { operations, recordBytes, writeRecord } from '../control/records.js';
import { applyLaunch, openSendsOf, releaseContexts } from '../ep/contexts.js';
import { offsetOf } from '../memory/address.js';
import { graphHeaderBytes } from '../worker/graph-op.js';
import { emptyCapture, releaseCapture } from './capture.js';
import { push, roomFor } from './enqueue.js';
import { errorRecord, failed, isError, succeeded } from './errors.js';
import { noteRecords, slotTaken } from './event-calls.js';
import type { Capture, GraphState, RankState, StreamState } from './objects.js';
import { type BackendState, foreign, isIdle } from './state.js';

/** Unfinished launches of one graph that records or awaits events, or holds operations of a group. */
const maxLaunches = 256;

type GraphCalls = Pick<RuntimeSpi, 'beginCapture' | 'endCapture' | 'launchGraph' | 'freeGraph'>;

export function graphCalls(state: BackendState): GraphCalls {
  return {
    beginCapture(handle) {
      const stream = state.stream(handle, 'beginCapture');
      if (isError(stream)) return state.refuse(stream);
      if (stream.capture !== undefined) return state.refuse(inCapture('beginCapture', stream));
      stream.capture = emptyCapture();
      return 0;
    },

    endCapture(handle) {
      const stream = state.owned('stream', handle, 'endCapture');
      if (isError(stream)) return failed(stream);
      const { capture } = stream;
      if (capture === undefined)
        return failed(
          errorRecord('ERR_INVALID_STATE', 'endCapture', 'the stream does not record a graph', {
            rank: stream.owner.rank,
            help: 'Call beginCapture first.',
          }),
        );
      stream.capture = undefined;
      const open = openSendsOf(capture);
      if (open > 0) {
        dropCapture(stream.owner, capture);
        return failed(
          errorRecord('ERR_INVALID_STATE', 'endCapture', `the graph leaves ${open} sends open`, {
            rank: stream.owner.rank,
            help: 'Record a complete for every send, so that the graph can be launched again.',
          }),
        );
      }
      return makeGraph(state, stream.owner, capture);
    },

    launchGraph(handle, streamHandle) {
      const stream = state.stream(streamHandle, 'launchGraph');
      if (isError(stream)) return state.refuse(stream);
      const graph = state.owned('graph', handle, 'launchGraph');
      if (isError(graph)) return state.refuse(graph);
      const wrong = foreign(graph, stream.owner, 'launchGraph');
      if (wrong !== undefined) return state.refuse(wrong);
      if (stream.capture !== undefined) return state.refuse(inCapture('launchGraph', stream));
      const full = roomFor(stream, operations.graph) ?? launchesTaken(graph, stream);
      if (full !== undefined) return state.refuse(full);
      const ticket = stream.enqueued + 1;
      const parameters = noteLaunch(state, graph, stream, ticket);
      push(stream, [operations.graph, graph.records, graph.capture.nodes.length, parameters, 0]);
      graph.uses.set(stream, ticket);
      applyLaunch(graph.capture);
      return 0;
    },

    freeGraph(handle) {
      const graph = state.owned('graph', handle, 'freeGraph');
      if (isError(graph)) return state.refuse(graph);
      freeGraphState(state, graph);
      return 0;
    },
  };
}

/** Frees a graph once its launches have finished; until then what it uses stays in use. */
export function freeGraphState(state: BackendState, graph: GraphState): void {
  const { world } = graph.owner;
  releaseContexts(graph.capture);
  world.crew.defer(
    () => isIdle(graph.uses),
    () => {
      state.arena.release(graph.region);
      releaseCapture(graph.capture, (call) => world.calls.release(call));
    },
  );
  state.handles.remove(graph);
  graph.owner.objects.delete(graph);
}

/** Gives up a capture that becomes no graph. */
function dropCapture(owner: RankState, capture: Capture): void {
  releaseContexts(capture);
  releaseCapture(capture, (call) => owner.world.calls.release(call));
}

function makeGraph(state: BackendState, owner: RankState, capture: Capture): Outcome<GraphHandle> {
  const recordsBytes = capture.nodes.length * recordBytes;
  const region = state.arena.allocateZeroed(
    graphHeaderBytes +
      recordsBytes +
      capture.epCalls.length * callBytes +
      capture.parameters * 8 * maxLaunches,
  );
  if (region === undefined) {
    dropCapture(owner, capture);
    return failed(
      errorRecord(
        'ERR_OUT_OF_MEMORY',
        'endCapture',
        `no memory for a graph of ${capture.nodes.length} operations`,
        {
          rank: owner.rank,
        },
      ),
    );
  }
  const records = region + graphHeaderBytes;
  const { f64 } = state.arena.space(region);
  const calls = records + recordsBytes;
  capture.nodes.forEach((node, index) => {
    const [operation, call, ...rest] = node;
    const placed = operation === operations.ep ? calls + call * callBytes : call;
    writeRecord(f64, (offsetOf(records) + index * recordBytes) / 8, [operation, placed, ...rest]);
  });
  capture.epCalls.forEach((words, index) => {
    f64.set(words, (offsetOf(calls) + index * callBytes) / 8);
  });
  const graph: GraphState = {
    kind: 'graph',
    handle: 0,
    owner,
    capture,
    region,
    records,
    parameters: capture.parameters === 0 ? 0 : calls + capture.epCalls.length * callBytes,
    launches: [],
    nextLaunch: 0,
    uses: new Map(),
  };
  owner.objects.add(graph);
  return succeeded(state.handles.add(graph));
}

function launchesTaken(graph: GraphState, stream: StreamState): ErrorRecord | undefined {
  if (graph.parameters === 0) return undefined;
  for (const [event, { records }] of graph.capture.events) {
    const taken = slotTaken(event, stream, records);
    if (taken !== undefined) return taken;
  }
  const last = graph.launches[graph.nextLaunch];
  if (
    last === undefined ||
    last.stream.freed ||
    last.stream.owner.world.completed(last.stream) >= last.ticket
  )
    return undefined;
  return errorRecord(
    'ERR_QUEUE_FULL',
    'launchGraph',
    `a graph already has ${maxLaunches} unfinished launches`,
    {
      rank: graph.owner.rank,
      expected: maxLaunches,
      help: 'Await synchronize() of the streams that run it.',
    },
  );
}

/** Binds the launch to the records of its events; returns the address of its parameters. */
function noteLaunch(state: BackendState, graph: GraphState, stream: StreamState, ticket: number): number {
  if (graph.parameters === 0) return 0;
  const parameters = graph.parameters + graph.nextLaunch * graph.capture.parameters * 8;
  const { f64 } = state.arena.space(parameters);
  for (const [event, { slot, records }] of graph.capture.events) {
    f64[offsetOf(parameters) / 8 + slot] = event.generation;
    noteRecords(event, stream, records, ticket);
  }
  for (const [group, { slot }] of graph.capture.epGroups) f64[offsetOf(parameters) / 8 + slot] = group.epoch;
  graph.launches[graph.nextLaunch] = { stream, ticket };
  graph.nextLaunch = (graph.nextLaunch + 1) % maxLaunches;
  return parameters;
}

function inCapture(op: string, stream: StreamState): ErrorRecord {
  return errorRecord('ERR_INVALID_STATE', op, `the stream of rank ${stream.owner.rank} records a graph`, {
    rank: stream.owner.rank,
    help: 'Call endCapture first.',
  });
}
