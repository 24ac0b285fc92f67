// SPDX-License-Identifier: Apache-2.0
// Times prepared transfers on all ranks of a world; a sample ends when the slowest rank is done.

import type { Communicator, DeviceBuffer, Layout, Stream, StreamEvent, World } from '@nccl-ext/core';
import { createPlan, prepareTransfer, type Transfer } from '@nccl-ext/m2n';
import type { Ceiling } from './ceiling.js';
import type { BenchRow } from './m2n-rows.js';
import { median, repeatTimed } from './samples.js';
import { timeAll } from './time-all.js';
import { uploadRandom } from './upload-random.js';

/** A time per execution, in milliseconds, and what one execution does. */
export interface RowTime {
  readonly ms: number;
  /** Bytes that one execution writes. */
  readonly bytes: number;
  /** The copy that causes as much traffic: half of what must be read, each byte once, and written. */
  readonly copyBytes: number;
  readonly samples: number;
}

/** Steps of a captured graph, and of the loop beside it. */
export const stepsPerGraph = 100;

interface RankState {
  readonly stream: Stream;
  readonly transfer: Transfer;
  /** Around each sample, where events tell time; else the host's clock does. */
  readonly events: readonly [start: StreamEvent, end: StreamEvent] | undefined;
}

/** A {@link RowTime} and the time of a plain copy, measured in turns with it. */
export interface PairedTime extends RowTime {
  /** Milliseconds in which plain copies move `ceilingBytes`. */
  readonly ceilingMs: number;
  readonly ceilingBytes: number;
}

/** Median time of one execution, in turns with plain copies. */
export async function measureRow(
  world: World,
  row: BenchRow,
  ceiling: Ceiling,
  signal: AbortSignal,
): Promise<PairedTime> {
  return withTransfer(world, row, async (states, bytes) => {
    const execute = (): Promise<number> =>
      timeAll(states, ({ transfer, stream }) => transfer.enqueue(stream));
    const [samples, copies] = (await repeatTimed([execute, () => ceiling.copy()], signal)) as [
      number[],
      number[],
    ];
    const paired = { ceilingMs: median(copies), ceilingBytes: ceiling.bytes };
    return { ms: median(samples), ...bytes, samples: samples.length, ...paired };
  });
}

/** Median time of a step: in a captured graph of 100 steps, and enqueued one by one. */
export async function measureStep(
  world: World,
  row: BenchRow,
  signal: AbortSignal,
): Promise<{ readonly captured: RowTime; readonly uncaptured: RowTime }> {
  return withTransfer(world, row, async (states, bytes) => {
    const enqueueSteps = ({ transfer, stream }: RankState): void => {
      for (let step = 0; step < stepsPerGraph; step++) transfer.enqueue(stream);
    };
    const graphs = new Map(states.map((state) => [state, state.stream.capture(() => enqueueSteps(state))]));
    const launch = (state: RankState): void => state.stream.launch(graphs.get(state)!);
    const times = await repeatTimed(
      [() => timeAll(states, launch), () => timeAll(states, enqueueSteps)],
      signal,
    );
    for (const graph of graphs.values()) await graph.dispose();
    const [captured, uncaptured] = times.map((samples) => ({
      ms: median(samples) / stepsPerGraph,
      ...bytes,
      samples: samples.length,
    })) as [RowTime, RowTime];
    return { captured, uncaptured };
  });
}

async function withTransfer<T>(
  world: World,
  { name, source, destination }: BenchRow,
  body: (states: readonly RankState[], bytes: Pick<RowTime, 'bytes' | 'copyBytes'>) => Promise<T>,
): Promise<T> {
  const plan = createPlan({ worldSize: world.size, tensors: [{ name, source, destination }] });
  const owned: { dispose(): Promise<void> }[] = [];
  try {
    const states = await world.run(async (communicator) => {
      const sources = bind(communicator, source, name);
      const destinations = bind(communicator, destination, name);
      const stream = communicator.createStream();
      const input = sources[name];
      if (input !== undefined) await uploadRandom(stream, input);
      const transfer = await prepareTransfer(communicator, plan, { sources, destinations });
      const events =
        world.backend.name === 'embedded'
          ? undefined
          : ([communicator.createEvent(), communicator.createEvent()] as const);
      owned.push(
        transfer,
        stream,
        ...(events ?? []),
        ...Object.values(sources),
        ...Object.values(destinations),
      );
      return { transfer, stream, events };
    });
    const bytes = plan.totals.wireBytes + plan.totals.localBytes;
    return await body(states, { bytes, copyBytes: (source.bytes + bytes) / 2 });
  } finally {
    for (const resource of owned) await resource.dispose();
  }
}

/** Memory for the shard of this rank, if it has one. */
function bind(communicator: Communicator, of: Layout, name: string): Record<string, DeviceBuffer> {
  if (!of.mesh.ranks.includes(communicator.rank)) return {};
  return { [name]: communicator.allocate(of.localBytes(communicator.rank)) };
}
