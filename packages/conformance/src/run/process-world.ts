// SPDX-License-Identifier: Apache-2.0
// What one process has of a world of processes: its own rank, or nothing where the world needs fewer ranks than there are.

import {
  type BackendInfo,
  type Communicator,
  type Faults,
  NcclExtError,
  singleDomain,
  type Topology,
} from '@nccl-ext/core';
import type { CaseWorld } from './case-world.js';

export class ProcessWorld implements CaseWorld {
  readonly size: number;
  readonly topology: Topology;
  readonly backend: BackendInfo;
  readonly ranks: readonly Communicator[];

  constructor(size: number, backend: BackendInfo, own: Communicator | undefined) {
    this.size = size;
    this.topology = own?.topology ?? singleDomain(size);
    this.backend = backend;
    this.ranks = own === undefined ? [] : [own];
  }

  get faults(): Faults {
    throw new NcclExtError('ERR_UNSUPPORTED', 'Faults are injected where one process has all ranks.');
  }

  /** As `World.run`, for the rank of this process. */
  async run<T>(body: (communicator: Communicator) => Promise<T> | T): Promise<T[]> {
    const results: T[] = [];
    for (const communicator of this.ranks) {
      try {
        results.push(await body(communicator));
      } catch (error) {
        if (!communicator.disposed) communicator.abort(`rank ${communicator.rank} failed: ${error}`);
        throw error;
      }
    }
    return results;
  }

  async dispose(): Promise<void> {
    for (const communicator of this.ranks) await communicator.dispose();
  }
}
