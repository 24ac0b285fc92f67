// SPDX-License-Identifier: Apache-2.0
// A rank that cannot enqueue lets the others wait for it until their deadline: so it says so before any of them enqueues.

import { type Communicator, NcclExtError, type Stream } from '@nccl-ext/core';
import { maxQueuedOperations } from '@nccl-ext/core/contract';
import { streamHandleOf } from '@nccl-ext/core/extend';

/** @throws ERR_INVALID_ARGUMENT, ERR_DISPOSED, ERR_FOREIGN_OBJECT for the stream of another rank, ERR_QUEUE_FULL. */
export function requireStream(stream: Stream, communicator: Communicator): void {
  streamHandleOf(stream, communicator);
  if (stream.queued < maxQueuedOperations) return;
  const { rank } = communicator;
  throw new NcclExtError(
    'ERR_QUEUE_FULL',
    `The stream of rank ${rank} already holds ${maxQueuedOperations} unfinished operations.`,
    { rank, field: 'stream', help: 'Await stream.synchronize() first.' },
  );
}
