// SPDX-License-Identifier: Apache-2.0
// What a publish can be refused for before anything moves: options of the wrong kind, and objects that cannot do their part.

import { NcclExtError, Stream } from '@nccl-ext/core';
import { describe, requireObject } from '@nccl-ext/core/extend';
import { requireStream } from '../transfer/require-stream.js';
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

/** @throws ERR_DISPOSED, and what `requireStream` throws: another rank would wait for a transfer that this one cannot enqueue. */
export function requireReady({ transfer, stream }: PublishOptions): void {
  transfer.assertUsable();
  requireStream(stream, transfer.communicator);
}
