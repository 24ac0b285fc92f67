// SPDX-License-Identifier: Apache-2.0
// A reshard made ready to be measured: its plan, memory with random input, a prepared transfer and a clock on each rank.

import type { Communicator, DeviceBuffer, Layout } from '@nccl-ext/core';
import {
  createPlan,
  type PrepareOptions,
  prepareTransfer,
  type Transfer,
  type TransferPlan,
} from '@nccl-ext/m2n';
import type { BenchWorld } from './bench-world.js';
import { openTimed, type TimedRank } from './device-clock.js';
import type { BenchRow } from './m2n-rows.js';
import { uploadRandom } from './upload-random.js';

export interface TransferRank extends TimedRank {
  readonly transfer: Transfer;
}

/** What a transfer is prepared with. */
export type TransferOptions = Pick<PrepareOptions, 'sms'>;

/** `body` gets the ranks of this process; all that was made for it is disposed when it ends. Collective. */
export async function withTransfer<T>(
  world: BenchWorld,
  { name, source, destination }: BenchRow,
  { sms }: TransferOptions,
  body: (ranks: readonly TransferRank[], plan: TransferPlan) => Promise<T>,
): Promise<T> {
  const plan = createPlan({ worldSize: world.size, tensors: [{ name, source, destination }] });
  const owned: { dispose(): Promise<void> }[] = [];
  try {
    const ranks = await world.run(async (communicator): Promise<TransferRank> => {
      const sources = bind(communicator, source, name);
      const destinations = bind(communicator, destination, name);
      owned.push(...Object.values(sources), ...Object.values(destinations));
      const prepared: { dispose(): Promise<void> }[] = [];
      const timed = openTimed(communicator, prepared);
      const input = sources[name];
      if (input !== undefined) await uploadRandom(timed.stream, input);
      // Before the memory that they use.
      owned.unshift(...prepared);
      const transfer = await prepareTransfer(communicator, plan, { sources, destinations, sms });
      owned.unshift(transfer);
      return { ...timed, transfer };
    });
    return await body(ranks, plan);
  } finally {
    for (const resource of owned) await resource.dispose();
  }
}

/** Memory for the shard of this rank, if it has one. */
function bind(communicator: Communicator, of: Layout, name: string): Record<string, DeviceBuffer> {
  if (!of.mesh.ranks.includes(communicator.rank)) return {};
  return { [name]: communicator.allocate(of.localBytes(communicator.rank)) };
}
