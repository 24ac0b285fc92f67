// SPDX-License-Identifier: Apache-2.0
// Where the values of shards are made and compared: on the host, rank after rank, or on the devices (device-values.ts).

import type { DType } from '@nccl-ext/core';
import type { TransferPlan } from '../plan/transfer-plan.js';
import { checkDestinations } from './check-destinations.js';
import { hostAccess } from './host-access.js';
import { loadSources } from './load-sources.js';
import type { RankMemory } from './rank-memory.js';
import type { ValueSource } from './values.js';

/** How a long step is told about and stopped. */
export interface ShardWork {
  readonly onBytes: (bytes: number) => void;
  readonly signal: AbortSignal | undefined;
}

export interface ShardValues {
  /** What a report calls the values. */
  readonly name: string;
  /** Fills the sources of every rank. */
  load(ranks: readonly RankMemory[], work: ShardWork): Promise<void>;
  /** Compares every destination byte of every rank. ERR_VERIFY naming the first element that differs. */
  check(ranks: readonly RankMemory[], work: ShardWork): Promise<void>;
}

/** Values that pass through the host. */
export function hostValues(plan: TransferPlan, values: ValueSource): ShardValues {
  const { tensors } = plan;
  const sourceDType = (tensor: number): DType => tensors[tensor]!.sourceDType;
  return {
    name: values.name,
    // One rank after the other: a file is read in order, and the bytes in flight stay bounded.
    async load(ranks, { onBytes, signal }) {
      for (const { stream, sources } of ranks)
        await loadSources(sources, hostAccess(stream), values, onBytes, signal);
    },
    async check(ranks, { onBytes, signal }) {
      for (const { communicator, stream, destinations } of ranks) {
        const { rank } = communicator;
        await checkDestinations(rank, destinations, hostAccess(stream), values, sourceDType, onBytes, signal);
      }
    },
  };
}
