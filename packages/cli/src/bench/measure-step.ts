// SPDX-License-Identifier: Apache-2.0
// What a small transfer costs: on the device, in a captured graph and enqueued one by one, and on the host that enqueues it.

import type { BenchWorld } from './bench-world.js';
import type { BenchRow } from './m2n-rows.js';
import { median, repeatTimed } from './samples.js';
import { timeAll } from './time-all.js';
import { withGraphs } from './with-graphs.js';
import { type TransferOptions, type TransferRank, withTransfer } from './with-transfer.js';

/** Steps of a captured graph, and of the loop beside it. */
export const stepsPerGraph = 100;
/** Enqueued one after the other while their time on the host is taken: far fewer than a stream holds. */
const timedEnqueues = 32;
const enqueueRounds = 12;

/** Medians, per step. */
export interface StepTime {
  readonly bytes: number;
  /** In a captured graph of {@link stepsPerGraph} steps. */
  readonly capturedMs: number;
  readonly uncapturedMs: number;
  /** What a call of `transfer.enqueue` takes on the host; of all ranks and calls. */
  readonly enqueueMs: number;
  readonly samples: number;
}

export interface StepOptions extends TransferOptions {
  /** Of a step's sampling, in milliseconds. */
  readonly budgetMs?: number | undefined;
  readonly signal: AbortSignal;
}

/** Collective. */
export async function measureStep(
  world: BenchWorld,
  row: BenchRow,
  { signal, budgetMs, sms }: StepOptions,
): Promise<StepTime> {
  return withTransfer(world, row, { sms }, async (ranks) => {
    const enqueueSteps = ({ transfer, stream }: TransferRank): void => {
      for (let step = 0; step < stepsPerGraph; step++) transfer.enqueue(stream);
    };
    const options = { together: world, ...(budgetMs === undefined ? {} : { budgetMs }) };
    const [captured, uncaptured] = (await withGraphs(ranks, enqueueSteps, (launch) =>
      repeatTimed([() => timeAll(ranks, launch), () => timeAll(ranks, enqueueSteps)], signal, options),
    )) as [number[], number[]];
    const medians = await world.gather('enqueue', await enqueueTimes(ranks));
    return {
      bytes: row.source.bytes,
      capturedMs: median(captured) / stepsPerGraph,
      uncapturedMs: median(uncaptured) / stepsPerGraph,
      enqueueMs: median(medians),
      samples: captured.length,
    };
  });
}

/** Median milliseconds of an enqueue alone, by rank of this process. The first round is not counted. */
async function enqueueTimes(ranks: readonly TransferRank[]): Promise<number[]> {
  const times = ranks.map((): number[] => []);
  for (let round = 0; round <= enqueueRounds; round++) {
    for (let i = 0; i < timedEnqueues; i++) {
      for (const [index, { transfer, stream }] of ranks.entries()) {
        const began = performance.now();
        transfer.enqueue(stream);
        const ended = performance.now();
        if (round > 0) times[index]!.push(ended - began);
      }
    }
    await Promise.all(ranks.map(({ stream }) => stream.synchronize()));
  }
  return times.map(median);
}
