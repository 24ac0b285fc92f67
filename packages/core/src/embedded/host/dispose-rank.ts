// SPDX-License-Identifier: Apache-2.0
// Ends a rank: lets its work drain, takes back memory that peers might still write, frees what it owns.

import { rankWord } from '../control/world-layout.js';
import { releaseContexts } from '../ep/contexts.js';
import { freeEpGroup, freeEpHandle } from '../ep/dispose-ep.js';
import { freeTransferState } from '../transfer/dispose-transfer.js';
import { releaseCapture } from './capture.js';
import { errorRecord } from './errors.js';
import { freeEventState } from './event-calls.js';
import { freeGraphState } from './graph-calls.js';
import type { OwnedState, RankState, StreamState } from './objects.js';
import { standStill } from './standstill.js';
import type { BackendState } from './state.js';
import { freeStreamState } from './stream-calls.js';

/** Resolves when nothing of the rank is left. The last rank of a world closes it. */
export async function disposeRankState(state: BackendState, rank: RankState): Promise<void> {
  const { world } = rank;
  const gone = errorRecord('ERR_DISPOSED', 'dispose', `rank ${rank.rank} was disposed`, { rank: rank.rank });
  // Its host calls end now; its streams may still stand still until the deadline.
  rank.gate.stop(false);
  world.leaveMeetings(rank.rank, gone, 'disposed');
  // What was split from it goes first: its streams may wait for events of this rank.
  await Promise.all([...rank.children].map((child) => (child.disposal ??= disposeRankState(state, child))));
  for (const stream of streamsOf(rank)) abandonCapture(stream);
  await drained(rank);
  world.setRankWord(rank.rank, rankWord.lost, 1);
  if (world.failure !== undefined) await world.crew.leave();
  const order = ['transfer', 'graph', 'epHandle', 'epGroup', 'event', 'stream', 'window', 'buffer'] as const;
  for (const kind of order) {
    for (const object of [...rank.objects]) if (object.kind === kind) await freeObject(state, object);
  }
  state.handles.remove(rank);
  world.ranks.splice(world.ranks.indexOf(rank), 1);
  rank.parent?.children.delete(rank);
  world.crew.sweep();
  if (world.ranks.length > 0) return;
  state.worlds.delete(world);
  await world.close();
}

/** Waits for all streams; a rank that stands still past the deadline of its own waits is aborted. */
async function drained(rank: RankState): Promise<void> {
  const { world } = rank;
  const all = (): Promise<unknown> =>
    Promise.all(streamsOf(rank).map((stream) => world.reached(stream, stream.enqueued)));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, world.options.timeoutMs);
  });
  await Promise.race([all(), late]);
  clearTimeout(timer);
  world.poison(
    rank.rank,
    errorRecord('ERR_ABORTED', 'dispose', `rank ${rank.rank} was disposed`, { rank: rank.rank }),
  );
  standStill(rank, false);
  await all();
}

function streamsOf(rank: RankState): StreamState[] {
  return [...rank.objects].filter((object) => object.kind === 'stream');
}

function abandonCapture(stream: StreamState): void {
  if (stream.capture !== undefined) {
    releaseContexts(stream.capture);
    releaseCapture(stream.capture, (call) => stream.owner.world.calls.release(call));
  }
  stream.capture = undefined;
}

async function freeObject(state: BackendState, object: OwnedState): Promise<void> {
  if (object.kind === 'transfer') await freeTransferState(state, object);
  else if (object.kind === 'graph') freeGraphState(state, object);
  else if (object.kind === 'epHandle') freeEpHandle(state, object);
  else if (object.kind === 'epGroup') freeEpGroup(state, object);
  else if (object.kind === 'event') freeEventState(state, object);
  else if (object.kind === 'stream') freeStreamState(state, object);
  else {
    if (object.kind === 'buffer') {
      state.arena.release(object.address);
      state.allocatedBytes -= object.bytes;
    }
    state.handles.remove(object);
    object.owner.objects.delete(object);
  }
}
