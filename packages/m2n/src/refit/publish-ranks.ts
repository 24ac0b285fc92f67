// SPDX-License-Identifier: Apache-2.0
// Publishes one version on every rank of this process, and tells how far the bytes are.

import { publish } from '@nccl-ext/core/extend';
import { Publication } from '../publish/publication.js';
import type { PublishTimes } from '../publish/publish-times.js';
import type { Transfer } from '../transfer/transfer.js';
import type { ProgressMeter } from './progress-meter.js';
import type { RankMemory } from './rank-memory.js';
import { slowest } from './refit-times.js';
import { sum } from './sum.js';

/** A rank whose weights can be replaced as often as there are new ones. */
export interface ServingRank extends RankMemory {
  readonly transfer: Transfer;
  readonly publication: Publication;
}

/** How often progress is asked for, in milliseconds. */
const interval = 100;

/** Each step's time on the slowest rank; throws what a listener of `meter` threw, once the version is published. */
export async function publishRanks(
  ranks: readonly ServingRank[],
  version: number | string,
  meter: ProgressMeter,
): Promise<PublishTimes> {
  const total = sum(ranks.map(({ transfer }) => transfer.progress.bytesPerExecution));
  const written = (): number => sum(ranks.map(({ transfer }) => transfer.progress.writtenBytes));
  const before = written();
  meter.begin('move', total);
  let failed: { readonly error: unknown } | undefined;
  const poll = setInterval(() => {
    try {
      const bytes = written() - before;
      meter.set(bytes);
      publish('refit.progress', () => ({ bytes, totalBytes: total }));
    } catch (error) {
      // What a listener throws out of a timer would end the process.
      failed = { error };
      clearInterval(poll);
    }
  }, interval);
  try {
    const times = await Promise.all(
      ranks.map(({ publication, transfer, stream }) => publication.publish({ transfer, stream, version })),
    );
    if (failed !== undefined) throw failed.error;
    meter.end();
    return slowest(times);
  } finally {
    clearInterval(poll);
  }
}

/** A new publication of the weights that `transfer` writes. */
export function serving(rank: RankMemory, transfer: Transfer): ServingRank {
  return { ...rank, transfer, publication: new Publication() };
}
