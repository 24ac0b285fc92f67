// SPDX-License-Identifier: Apache-2.0
// `bench m2n` on the embedded backend: threads of this process against copies by as many threads.

import { availableParallelism } from 'node:os';
import type { Session } from '../command.js';
import type { BenchResult } from './bench-result.js';
import type { BenchWorld } from './bench-world.js';
import { CopyThreads } from './copy-ceiling.js';
import { m2nRows } from './m2n-rows.js';
import { machineFacts } from './machine.js';
import { measureWorld } from './measure-world.js';
import { sidesOf } from './sides.js';

export interface HostInput extends Pick<Session, 'signal' | 'progress'> {
  readonly ranks: number;
  readonly sizes: readonly number[];
  /** 0: one per core, at most one per rank. */
  readonly workers: number;
  open(ranks: number, workers: number): Promise<BenchWorld>;
}

export async function benchHost(input: HostInput): Promise<BenchResult> {
  const { ranks, sizes, signal, progress, open } = input;
  const workers = input.workers === 0 ? Math.min(availableParallelism(), ranks) : input.workers;
  const world = await open(ranks, workers);
  try {
    const sides = sidesOf(Array.from({ length: ranks }, () => 'host'));
    const measured = await measureWorld(world, {
      signal,
      progress,
      sides,
      sizes,
      rows: (bytes) => m2nRows(sides, bytes),
      // Milliseconds each: what starts and ends it does not count.
      executions: () => 1,
      copyBytes: ({ sourceBytes, bytes }) => (sourceBytes + bytes) / 2,
      ceiling: async (bytes) => new CopyThreads(bytes, workers),
    });
    return { machine: machineFacts(), backend: world.backend, ranks, processes: 1, workers, ...measured };
  } finally {
    await world.dispose();
  }
}
