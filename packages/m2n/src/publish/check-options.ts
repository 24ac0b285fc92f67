// SPDX-License-Identifier: Apache-2.0
// What a publish can be refused for before anything moves: options of the wrong kind, and objects that cannot do their part.

import { NcclExtError, Stream } from '@nccl-ext/core';
import { maxQueuedOperations } from '@nccl-ext/core/contract';
import { describe, requireObject, streamHandleOf } from '@nccl-ext/core/extend';
import { Transfer } from '../transfer/transfer.js';
import type { PublishOptions } from './publication.js';

/** @throws ERR_INVALID_ARGUMENT naming the option. */
export function requireOptions(options: PublishOptions): void {
  requireObject('options', options);
  const { transfer, stream, version, pause, resume } = options;
  const fits = {
    transfer: transfer instanceof Transfer,
    stream: stream instanceof Stream,
    version: typeof version === 'string' || Number.isFinite(version),
    pause: pause === undefined || typeof pause === 'function',
    resume: resume === undefined || typeof resume === 'function',
  };
  const wrong = (Object.keys(fits) as (keyof typeof fits)[]).find((field) => !fits[field]);
  if (wrong === undefined) return;
  const wanted = {
    transfer: 'a transfer as prepareTransfer makes it',
    stream: 'a stream as communicator.createStream makes it',
    version: 'a string or a finite number',
    pause: 'a function',
    resume: 'a function',
  }[wrong];
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${wrong} must be ${wanted}, got ${describe(options[wrong])}.`,
    { field: wrong },
  );
}

/**
 * A rank that could not enqueue would let the others wait for it, and tear them.
 *
 * @throws ERR_DISPOSED, ERR_FOREIGN_OBJECT for the stream of another rank, ERR_QUEUE_FULL.
 */
export function requireReady({ transfer, stream }: PublishOptions): void {
  const { communicator } = transfer;
  transfer.assertUsable();
  streamHandleOf(stream, communicator);
  if (stream.queued < maxQueuedOperations) return;
  throw new NcclExtError(
    'ERR_QUEUE_FULL',
    `The stream of rank ${communicator.rank} already holds ${maxQueuedOperations} unfinished operations.`,
    { op: 'publish', rank: communicator.rank, help: 'Await stream.synchronize() before you publish.' },
  );
}
