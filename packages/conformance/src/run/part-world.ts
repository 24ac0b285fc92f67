// SPDX-License-Identifier: Apache-2.0
// Ranks that are no whole world of `localWorld`: those that this process has among others' ranks, or parts of split communicators.

import {
  type BackendInfo,
  type Communicator,
  type Faults,
  NcclExtError,
  singleDomain,
  type Topology,
} from '@nccl-ext/core';
import type { CaseWorld } from './case-world.js';

export class PartWorld implements CaseWorld {
  readonly size: number;
  readonly topology: Topology;
  readonly backend: BackendInfo;
  readonly ranks: readonly Communicator[];

  constructor(size: number, backend: BackendInfo, ranks: readonly Communicator[]) {
    this.size = size;
    this.topology = ranks[0]?.topology ?? singleDomain(size);
    this.backend = backend;
    this.ranks = ranks;
  }

  get faults(): Faults {
    throw new NcclExtError('ERR_UNSUPPORTED', 'Faults are injected where one process has all ranks.');
  }

  /** As `World.run`, for the ranks of this process. */
  run<T>(body: (communicator: Communicator) => Promise<T> | T): Promise<T[]> {
    return Promise.all(
      this.ranks.map(async (communicator) => {
        try {
          return await body(communicator);
        } catch (error) {
          if (!communicator.disposed) communicator.abort(`rank ${communicator.rank} failed: ${error}`);
          throw error;
        }
      }),
    );
  }

  async dispose(): Promise<void> {
    await Promise.all(this.ranks.map((communicator) => communicator.dispose()));
  }
}
