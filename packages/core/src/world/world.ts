// SPDX-License-Identifier: Apache-2.0
// The ranks of this process, and the backend under them.

import type { Backend, BackendInfo, FaultSpi } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireFunction } from '../errors/require-kind.js';
import { textOf } from '../errors/text-of.js';
import { publish } from '../observe/channels.js';
import { Communicator, type RankOptions } from '../runtime/communicator.js';
import { Resource } from '../runtime/resource.js';
import { errorFrom } from '../runtime/unwrap.js';
import type { Topology } from '../topology/topology.js';
import { Faults } from './faults.js';

/** Ranks that live in this process, made by `localWorld`. Disposing it disposes its communicators and ends the backend. */
export class World extends Resource {
  /** `ranks[r]` is the communicator of rank r. */
  readonly ranks: readonly Communicator[];
  readonly topology: Topology;
  readonly #backend: Backend;

  /** @internal Use `localWorld`. */
  constructor(backend: Backend, handles: readonly number[], topology: Topology, options: RankOptions) {
    super('world');
    this.#backend = backend;
    this.topology = topology;
    this.ranks = handles.map(
      (handle, rank) => new Communicator(this, backend, handle, rank, topology, options),
    );
    publish('world.created', () => ({
      backend: this.backend.name,
      worldSize: this.size,
      localRanks: ranksOf(this),
    }));
  }

  get size(): number {
    return this.ranks.length;
  }

  /** Name, version and facts of the backend. */
  get backend(): BackendInfo {
    return this.#backend.info;
  }

  /** Makes ranks late, absent or wrong, to see what a program does then. ERR_UNSUPPORTED on real hardware. */
  get faults(): Faults {
    return new Faults(faultsOf(this.#backend), this.ranks);
  }

  /**
   * Runs `body` once per rank, concurrently, and returns the results by rank. When one rank's body throws, that rank is aborted so that its
   * peers fail at once instead of waiting for their timeout, and its error is thrown.
   *
   * @example
   * ```ts
   * const names = await world.run(async (comm) => `rank ${comm.rank} of ${comm.size}`);
   * ```
   */
  async run<T>(body: (communicator: Communicator) => Promise<T> | T): Promise<T[]> {
    this.assertUsable();
    requireFunction('body', body);
    let first: { readonly error: unknown } | undefined;
    const results = await Promise.allSettled(
      this.ranks.map(async (communicator) => {
        try {
          return await body(communicator);
        } catch (error) {
          first ??= { error };
          if (!communicator.disposed)
            communicator.abort(`rank ${communicator.rank} failed: ${textOf(error)}`);
          throw error;
        }
      }),
    );
    if (first !== undefined) throw first.error;
    return results.map((result) => (result as PromiseFulfilledResult<T>).value);
  }

  protected override async release(): Promise<void> {
    await this.#backend.dispose();
    publish('world.disposed', () => ({ backend: this.backend.name, localRanks: ranksOf(this) }));
  }
}

function ranksOf(world: World): readonly number[] {
  return world.ranks.map((communicator) => communicator.rank);
}

function faultsOf(backend: Backend): { readonly spi: FaultSpi; readonly fail: () => NcclExtError } {
  if (backend.faults === undefined) {
    throw new NcclExtError('ERR_UNSUPPORTED', `The ${backend.info.name} backend cannot inject faults.`, {
      help: "Use localWorld({ ranks, backend: 'embedded' }).",
    });
  }
  return { spi: backend.faults, fail: () => errorFrom(backend.runtime.lastError()) };
}
