// SPDX-License-Identifier: Apache-2.0
// A plan bound to memory on one rank: prepared once, enqueued as often as there are new weights.

import type { Communicator, Stream } from '@nccl-ext/core';
import type { M2nSpi, RuntimeSpi, TransferHandle, TransferPath } from '@nccl-ext/core/contract';
import { check, publish, Resource, streamHandleOf, unwrap } from '@nccl-ext/core/extend';
import type { ExecutablePlan } from '../plan/executable-plan.js';

/** How far this rank is. */
export interface TransferProgress {
  /** Bytes that this rank has written to destinations over all executions, its own included. */
  readonly writtenBytes: number;
  /** Bytes that one execution writes on this rank. */
  readonly bytesPerExecution: number;
  /** Executions that finished without an error. */
  readonly completed: number;
}

/** Made by {@link prepareTransfer}. */
export class Transfer extends Resource {
  readonly communicator: Communicator;
  readonly plan: ExecutablePlan;
  readonly #runtime: RuntimeSpi;
  readonly #m2n: M2nSpi;
  readonly #handle: TransferHandle;
  readonly #bytesPerExecution: number;
  #epoch = 0;

  /** @internal Use `prepareTransfer`. */
  constructor(
    communicator: Communicator,
    plan: ExecutablePlan,
    spi: { readonly runtime: RuntimeSpi; readonly m2n: M2nSpi },
    handle: TransferHandle,
    bytesPerExecution: number,
  ) {
    super('transfer', communicator);
    this.communicator = communicator;
    this.plan = plan;
    this.#runtime = spi.runtime;
    this.#m2n = spi.m2n;
    this.#handle = handle;
    this.#bytesPerExecution = bytesPerExecution;
  }

  /**
   * Puts one execution on `stream` and returns. Every rank of the communicator enqueues the transfer equally often, spectators included.
   * No destination byte of this rank changes before the stream reaches the operation. Capturable.
   *
   * @throws ERR_QUEUE_FULL, ERR_FOREIGN_OBJECT (a stream of another communicator), ERR_POISONED after a timeout or a lost rank.
   */
  enqueue(stream: Stream): void {
    this.assertUsable();
    check(this.#runtime, this.#m2n.enqueueTransfer(this.#handle, streamHandleOf(stream, this.communicator)));
    this.#epoch += 1;
    publish('transfer.enqueued', () => ({
      rank: this.communicator.rank,
      digest: this.plan.digest,
      epoch: this.#epoch,
    }));
  }

  get progress(): TransferProgress {
    this.assertUsable();
    return { ...this.#m2n.progressOf(this.#handle), bytesPerExecution: this.#bytesPerExecution };
  }

  /**
   * Which way the bytes of one execution take between this rank and each peer, and where a pair sends through NCCL instead of writing,
   * why. The same for all executions: it was decided by `prepareTransfer`.
   *
   * @example
   * ```ts
   * for (const { peer, path, why } of transfer.paths()) if (path === 'sendrecv') console.log(`rank ${peer}: ${why}`);
   * ```
   */
  paths(): readonly TransferPath[] {
    this.assertUsable();
    return this.#m2n.pathsOf(this.#handle);
  }

  /** Waits for executions in flight, at most until their deadline. */
  protected override async release(): Promise<void> {
    unwrap(await this.#m2n.disposeTransfer(this.#handle));
  }
}
