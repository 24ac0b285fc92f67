// SPDX-License-Identifier: Apache-2.0
// What nccl-ext tells a program while it runs: typed events on node:diagnostics_channel, free when nobody listens.

import { type Channel, channel } from 'node:diagnostics_channel';
import type { BackendName } from '../contract/backend.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireFunction } from '../errors/require-kind.js';
import { describe } from '../mesh/require-integer.js';

/** Events by name; the channel of an event is `nccl-ext:` and its name. Times are milliseconds, sizes bytes. */
export interface ChannelEvents {
  'world.created': {
    readonly backend: BackendName;
    readonly worldSize: number;
    readonly localRanks: readonly number[];
  };
  'world.disposed': { readonly backend: BackendName; readonly localRanks: readonly number[] };
  'transfer.prepared': {
    readonly rank: number;
    readonly digest: string;
    readonly tensors: number;
    readonly sendBytes: number;
    readonly prepareMs: number;
  };
  'transfer.enqueued': { readonly rank: number; readonly digest: string; readonly epoch: number };
  'refit.progress': { readonly bytes: number; readonly totalBytes: number };
  'refit.published': {
    readonly rank: number;
    readonly version: number | string;
    /** Bytes that this rank wrote. */
    readonly writtenBytes: number;
    /** How long the steps took on this rank: `PublishTimes` of @nccl-ext/m2n. */
    readonly agreeMs: number;
    readonly pauseMs: number;
    readonly moveMs: number;
    readonly verifyMs: number;
    readonly resumeMs: number;
    readonly stallMs: number;
  };
  'rank.error': { readonly rank: number; readonly error: NcclExtError };
}

/** The name of an event. */
export type ChannelName = keyof ChannelEvents;

// Held here for ever: a channel that nobody references may be collected with its subscribers.
const channels: { readonly [N in ChannelName]: Channel } = {
  'world.created': channel('nccl-ext:world.created'),
  'world.disposed': channel('nccl-ext:world.disposed'),
  'transfer.prepared': channel('nccl-ext:transfer.prepared'),
  'transfer.enqueued': channel('nccl-ext:transfer.enqueued'),
  'refit.progress': channel('nccl-ext:refit.progress'),
  'refit.published': channel('nccl-ext:refit.published'),
  'rank.error': channel('nccl-ext:rank.error'),
};

/** Tells subscribers about an event; `event` is called only when there are any. */
export function publish<N extends ChannelName>(name: N, event: () => ChannelEvents[N]): void {
  const target = channels[name];
  if (target.hasSubscribers) target.publish(event());
}

/**
 * Calls `listener` with every event of this name, synchronously where it happens.
 * A listener that throws does not disturb the publisher: Node reports it as an uncaught exception of its own.
 *
 * @throws ERR_INVALID_ARGUMENT for an unknown name or a listener that is no function.
 * @returns a function that ends the subscription.
 * @example
 * ```ts
 * const stop = subscribe('refit.progress', ({ bytes, totalBytes }) => {
 *   process.stderr.write(`${Math.floor((100 * bytes) / totalBytes)} %\r`);
 * });
 * stop();
 * ```
 */
export function subscribe<N extends ChannelName>(
  name: N,
  listener: (event: ChannelEvents[N]) => void,
): () => void {
  if (typeof name !== 'string' || !Object.hasOwn(channels, name)) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `name must be one of ${Object.keys(channels).join(', ')}, got ${describe(name)}`,
      { field: 'name', seen: name },
    );
  }
  requireFunction('listener', listener);
  const receive = (message: unknown): void => listener(message as ChannelEvents[N]);
  channels[name].subscribe(receive);
  return () => {
    channels[name].unsubscribe(receive);
  };
}
