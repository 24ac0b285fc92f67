// SPDX-License-Identifier: Apache-2.0
// Executes a case that is data: plans it, moves it as often and in the way it says, and returns the first difference.

import { type Graph, type Stream, type StreamEvent, singleDomain, topologyFor } from '@nccl-ext/core';
import type { M2nCase } from '../cases/case.js';
import type { CaseWorld } from './case-world.js';
import { checkTotals } from './expected-totals.js';
import type { Content } from './image.js';
import { MoveSession } from './move-session.js';
import type { PendingRefit } from './read-back.js';

/**
 * What is wrong, or undefined when everything is as the oracle says; `sms` is what ranks pass to `prepareTransfer`. After a problem or an
 * error the world is left with what the case made in it: the caller ends it.
 */
export async function runMoveCase(
  world: CaseWorld,
  move: M2nCase,
  sms?: number,
): Promise<string | undefined> {
  const topology =
    move.topology === undefined ? singleDomain(world.size) : topologyFor(move.topology, world.size);
  const sessions: MoveSession[] = [];
  for (const tensors of [move.tensors, ...(move.alternate ? [move.alternate] : [])]) {
    const session = await MoveSession.open(world, { tensors, topology, verify: move.verify ?? false, sms });
    sessions.push(session);
    const problem = checkTotals(session.plan, tensors, world.size, topology);
    if (problem !== undefined) return problem;
  }
  const lanes = new Lanes(world, move.streams ?? 1);
  const graphs = await captureAll(sessions, lanes, move);
  const difference = await runRefits(sessions, lanes, graphs, move);
  if (difference !== undefined) return difference;
  for (const session of sessions) {
    const problem = session.checkProgress();
    if (problem !== undefined) return problem;
  }
  await lanes.dispose();
  await Promise.all(graphs?.flat().map((graph) => graph.dispose()) ?? []);
  for (const session of sessions) await session.dispose();
  return undefined;
}

async function runRefits(
  sessions: readonly MoveSession[],
  lanes: Lanes,
  graphs: readonly (readonly Graph[])[] | undefined,
  move: M2nCase,
): Promise<string | undefined> {
  const pending: Refit[] = [];
  const passes = Math.max(...sessions.map((session) => session.passes));
  const refits = (move.repeat ?? 1) * passes;
  for (let number = 0; number < refits; number++) {
    const session = sessions[number % sessions.length]!;
    const content = contentOf(number, passes);
    const streams = await lanes.take();
    const launched = graphs?.[number % sessions.length];
    if (!session.fitsOneChunk) {
      const difference = await session.runLargeRefit(streams, content);
      if (difference !== undefined) return `refit ${number}: ${difference}`;
      continue;
    }
    const refit = session.enqueueRefit(
      streams,
      content,
      launched && ((rank, stream) => stream.launch(launched[rank]!)),
    );
    pending.push({ number, refit });
    if (move.pipelined) lanes.chain(streams);
    else {
      const difference = await settle(lanes, pending);
      if (difference !== undefined) return difference;
    }
  }
  return settle(lanes, pending);
}

interface Refit {
  readonly number: number;
  readonly refit: PendingRefit;
}

/** Waits for what is pending and compares it. */
async function settle(lanes: Lanes, pending: Refit[]): Promise<string | undefined> {
  await lanes.synchronize();
  for (const { number, refit } of pending.splice(0)) {
    const difference = refit.difference();
    if (difference !== undefined) return `refit ${number}: ${difference}`;
  }
  return undefined;
}

/** Graphs by session and rank, where the case wants them. */
async function captureAll(
  sessions: readonly MoveSession[],
  lanes: Lanes,
  move: M2nCase,
): Promise<readonly (readonly Graph[])[] | undefined> {
  if (move.capture === undefined) return undefined;
  const streams = await lanes.take();
  if (move.capture === 'warm') {
    for (const session of sessions) session.enqueueRefit(streams, contentOf(-1, 1));
    await lanes.synchronize();
  }
  return sessions.map((session) => session.capture(streams));
}

/** Every refit has values and guards of its own; the byte starts at 0xDE. */
function contentOf(number: number, passes: number): Content {
  return { epoch: number + 1, pass: number % passes, guard: (0xde + 37 * number) & 0xff };
}

/** The streams of all ranks, taken in turns. */
class Lanes {
  readonly #world: CaseWorld;
  readonly #fresh: boolean;
  #lanes: readonly (readonly Stream[])[];
  readonly #events: StreamEvent[] = [];
  #turn = 0;

  constructor(world: CaseWorld, count: number | 'fresh') {
    this.#world = world;
    this.#fresh = count === 'fresh';
    this.#lanes = Array.from({ length: count === 'fresh' ? 1 : count }, () => streamsOf(world));
  }

  /** One stream per rank. */
  async take(): Promise<readonly Stream[]> {
    if (this.#fresh) {
      await this.dispose();
      this.#lanes = [streamsOf(this.#world)];
    }
    return this.#lanes[this.#turn++ % this.#lanes.length]!;
  }

  /** Work that the other lanes get from now on waits for what `streams` have: refits share their memory. */
  chain(streams: readonly Stream[]): void {
    if (this.#lanes.length === 1) return;
    streams.forEach((stream, rank) => {
      const event = this.#world.ranks[rank]!.createEvent();
      this.#events.push(event);
      stream.record(event);
      for (const lane of this.#lanes) if (lane[rank] !== stream) lane[rank]!.wait(event);
    });
  }

  async synchronize(): Promise<void> {
    const results = await Promise.allSettled(this.#lanes.flat().map((stream) => stream.synchronize()));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#lanes.flat().map((stream) => stream.dispose()));
    this.#lanes = [];
    await Promise.all(this.#events.splice(0).map((event) => event.dispose()));
  }
}

function streamsOf(world: CaseWorld): readonly Stream[] {
  return world.ranks.map((communicator) => communicator.createStream());
}
