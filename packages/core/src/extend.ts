// SPDX-License-Identifier: Apache-2.0
// For packages that add operations to communicators, such as m2n and ep (`@nccl-ext/core/extend`). Applications need none of it.

import type { Backend, RankHandle, StreamHandle } from './contract/index.js';
import { NcclExtError } from './errors/nccl-ext-error.js';
import { describe } from './mesh/require-integer.js';
import { Communicator } from './runtime/communicator.js';
import type { DeviceBuffer } from './runtime/device-buffer.js';
import { requireOwn } from './runtime/require-own.js';
import { type Stream, streamKind } from './runtime/stream.js';

/** The backend under a communicator. */
export function backendOf(communicator: Communicator): Backend {
  if (!(communicator instanceof Communicator)) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `communicator must be a rank of a world, got ${describe(communicator)}`,
      { field: 'communicator', help: 'Pass world.ranks[r] of localWorld, or what init returned.' },
    );
  }
  return communicator.backend;
}

/** The backend's handle of this rank; ERR_DISPOSED after dispose. */
export function rankHandleOf(communicator: Communicator): RankHandle {
  return communicator.handle;
}

/** The backend's handle of a buffer; ERR_DISPOSED after dispose. */
export function bufferHandleOf(buffer: DeviceBuffer): number {
  return buffer.handle;
}

/** The backend's handle of a stream of this rank; ERR_FOREIGN_OBJECT for another one's, ERR_DISPOSED after dispose. */
export function streamHandleOf(stream: Stream, owner: Communicator): StreamHandle {
  return requireOwn(stream, 'stream', streamKind, owner).backendHandle;
}

export { dtypeCode } from './dtype/dtype.js';
export { requireArray, requireFunction, requireObject, requireText } from './errors/require-kind.js';
export { textOf } from './errors/text-of.js';
export { describe, requireInteger } from './mesh/require-integer.js';
export { type ChannelEvents, type ChannelName, publish } from './observe/channels.js';
export { nearestName } from './options/nearest-name.js';
export { type OptionSpec, optionNames, optionTable } from './options/option-table.js';
export { requireKnownOptions } from './options/require-known-options.js';
export { refuseTogether } from './runtime/refuse-together.js';
export { Resource } from './runtime/resource.js';
export { check, errorFrom, unwrap } from './runtime/unwrap.js';
