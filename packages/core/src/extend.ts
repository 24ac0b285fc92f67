// SPDX-License-Identifier: Apache-2.0
// For packages that add operations to communicators, such as m2n and ep (`@nccl-ext/core/extend`). Applications need none of it.

import type { Backend, RankHandle, StreamHandle } from './contract/index.js';
import type { Communicator } from './runtime/communicator.js';
import type { DeviceBuffer } from './runtime/device-buffer.js';
import type { Stream } from './runtime/stream.js';

/** The backend under a communicator. */
export function backendOf(communicator: Communicator): Backend {
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

/** The backend's handle of a stream; ERR_DISPOSED after dispose. */
export function streamHandleOf(stream: Stream): StreamHandle {
  return stream.handle;
}

export { type ChannelEvents, type ChannelName, publish } from './observe/channels.js';
export { nearestName } from './options/nearest-name.js';
export { type OptionSpec, optionNames, optionTable } from './options/option-table.js';
export { Resource } from './runtime/resource.js';
export { check, errorFrom, unwrap } from './runtime/unwrap.js';
