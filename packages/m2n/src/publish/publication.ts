// SPDX-License-Identifier: Apache-2.0
// Which version of the weights a rank serves, and how a new one replaces it: all ranks or none, never half of one.

import { type Communicator, NcclExtError, type Stream } from '@nccl-ext/core';
import { publish as emit } from '@nccl-ext/core/extend';
import type { Transfer, TransferProgress } from '../transfer/transfer.js';
import { requireOptions, requireReady } from './check-options.js';
import { type PublishTimes, StepClock } from './publish-times.js';
import { type StepOutcome, type StepReport, settleStep } from './settle-step.js';

/**
 * - `idle`: nothing was published yet.
 * - `admitted`: every rank agreed on version and plan; the old version serves.
 * - `paused`: every rank stopped serving; no byte has moved.
 * - `moving`: bytes move; destinations hold parts of two versions.
 * - `verified`: everything arrived (and was hashed, if the transfer verifies) on every rank.
 * - `published`: the rank serves `version`.
 * - `torn`: the destination holds part of a new version. Only a complete publish leads back.
 */
export type PublicationState = 'idle' | 'admitted' | 'paused' | 'moving' | 'verified' | 'published' | 'torn';

export interface PublishOptions {
  readonly transfer: Transfer;
  readonly stream: Stream;
  /** The new version, equal on all ranks. */
  readonly version: number | string;
  /** Stops serving. Runs after every rank agreed; when it throws on one rank, no byte moves anywhere and every rank resumes. */
  readonly pause?: () => Promise<void> | void;
  /** Starts serving again: the new version after success, the old one after a failure before the first byte. Not called when torn. */
  readonly resume?: (version: number | string | undefined) => Promise<void> | void;
}

/** One call of `publish`. */
interface Attempt {
  readonly communicator: Communicator;
  readonly options: PublishOptions;
  readonly wasTorn: boolean;
  readonly clock: StepClock;
}

/**
 * The state of one rank. Keep it for the life of the weights; it outlives transfers and communicators, so after a lost rank a
 * publish over a new communicator mends a torn destination.
 *
 * @example
 * ```ts
 * const publication = new Publication();
 * await publication.publish({ transfer, stream, version: 7, pause: () => engine.pause(), resume: () => engine.resume() });
 * publication.version; // 7
 * ```
 */
export class Publication {
  #state: PublicationState = 'idle';
  #version: number | string | undefined;
  #running = false;

  get state(): PublicationState {
    return this.#state;
  }

  /** The version that this rank serves; undefined before the first and while torn. */
  get version(): number | string | undefined {
    return this.#version;
  }

  /** True when the destination holds one whole version. */
  get whole(): boolean {
    return this.#state !== 'torn' && this.#state !== 'moving';
  }

  /** For engines, before they serve: throws ERR_TORN unless the destination holds one whole version. */
  assertWhole(): void {
    if (this.whole) return;
    throw new NcclExtError('ERR_TORN', `The destination is ${this.#state}: it holds parts of two versions.`, {
      op: 'publish',
      seen: this.#state,
      help: 'Publish a complete version; over a new communicator if this one lost a rank.',
    });
  }

  /**
   * Collective: moves a new version and sets it on every rank, or on none; resolves to how long the steps took here.
   *
   * @throws ERR_INVALID_STATE while another publish runs. ERR_DISAGREEMENT when versions or plans differ. Any error of `pause` or the
   * transfer; `state` then says whether the old version still serves (`published`, `idle`) or the destination is `torn`.
   */
  async publish(options: PublishOptions): Promise<PublishTimes> {
    if (this.#running) {
      throw new NcclExtError('ERR_INVALID_STATE', 'This publication already runs.', {
        help: 'Await the publish in progress first.',
      });
    }
    requireOptions(options);
    this.#running = true;
    const clock = new StepClock();
    const { communicator } = options.transfer;
    const attempt = { communicator, options, wasTorn: this.#state === 'torn', clock };
    try {
      const before = await this.#admitAndPause(attempt);
      await this.#move(attempt, before);
      this.#state = 'published';
      this.#version = options.version;
      await options.resume?.(options.version);
      clock.end();
      const { times } = clock;
      emit('refit.published', () => ({
        version: options.version,
        rank: communicator.rank,
        writtenBytes: before.bytesPerExecution,
        ...times,
      }));
      return times;
    } catch (error) {
      throw rootOf(communicator, error);
    } finally {
      this.#running = false;
    }
  }

  /** Up to here nothing has moved: any failure leaves things as they were. Resolves to how far the transfer is. */
  async #admitAndPause({ communicator, options, wasTorn, clock }: Attempt): Promise<TransferProgress> {
    const before = this.#state;
    try {
      await communicator.agree('publish', { version: options.version, plan: options.transfer.plan.digest });
      this.#state = 'admitted';
    } catch (error) {
      this.#state = before;
      throw error;
    }
    clock.end();
    let progress: TransferProgress | undefined;
    const pausing = outcomeOf(
      async () => {
        requireReady(options);
        await options.pause?.();
        requireReady(options);
        progress = options.transfer.progress;
      },
      () => false,
    );
    try {
      await settled('publish pause', settleStep(communicator, 'publish pause', pausing), pausing);
      this.#state = 'paused';
      clock.end();
      return progress!;
    } catch (error) {
      this.#state = before;
      if (!wasTorn) await options.resume?.(this.#version);
      throw error;
    }
  }

  async #move({ communicator, options, wasTorn, clock }: Attempt, before: TransferProgress): Promise<void> {
    const { transfer, stream } = options;
    this.#state = 'moving';
    const moving = outcomeOf(
      async () => {
        transfer.enqueue(stream);
        await stream.synchronize();
        clock.end();
      },
      () => transfer.disposed || transfer.progress.writtenBytes > before.writtenBytes,
    );
    const settling = settleStep(communicator, 'publish move', moving);
    try {
      await settled('publish move', settling, moving);
      this.#state = 'verified';
      clock.end();
    } catch (error) {
      // Where other ranks could not be heard, they may have written.
      const reports = await settling.catch(() => undefined);
      if (wasTorn || reports === undefined || reports.some((report) => report.touched)) this.#tear();
      else {
        this.#state = this.#version === undefined ? 'idle' : 'published';
        await options.resume?.(this.#version);
      }
      throw error;
    }
  }

  #tear(): void {
    this.#state = 'torn';
    this.#version = undefined;
  }
}

/** What broke the communicator, and who, says more than that a transfer was skipped because it is broken. */
function rootOf(communicator: Communicator, error: unknown): unknown {
  if (!NcclExtError.is(error, 'ERR_POISONED') || communicator.disposed) return error;
  return communicator.failure ?? error;
}

/** Runs a step of this rank; never rejects. */
async function outcomeOf(step: () => Promise<void>, touched: () => boolean): Promise<StepOutcome> {
  try {
    await step();
    return { error: undefined, touched: touched() };
  } catch (error) {
    return { error: error ?? new Error('unknown failure'), touched: touched() };
  }
}

/**
 * Whether a step only ended because another rank did not come: that one may have waited for a third rank, which the ranks that still say
 * that they work know better.
 */
function isOfWaiting(failure: unknown): boolean {
  const codes = ['ERR_TIMEOUT', 'ERR_RANK_LOST', 'ERR_POISONED'] as const;
  return codes.some((code) => NcclExtError.is(failure, code));
}

/** Resolves when the step went well everywhere; else throws this rank's own failure, or one that names the rank which failed. */
async function settled(
  step: string,
  settling: Promise<readonly StepReport[]>,
  own: Promise<StepOutcome>,
): Promise<void> {
  let reports: readonly StepReport[];
  try {
    reports = await settling;
  } catch (error) {
    const { error: failure } = await own;
    throw isOfWaiting(failure) ? error : (failure ?? error);
  }
  const { error: failure } = await own;
  if (failure !== undefined) throw failure;
  const failed = reports.findIndex((report) => report.error !== null);
  if (failed < 0) return;
  throw new NcclExtError('ERR_RANK_LOST', `Rank ${failed} failed in ${step}: ${reports[failed]?.error}`, {
    op: step,
    peer: failed,
    help: 'The old version still serves where `state` is published or idle; where it is torn, publish again.',
  });
}
