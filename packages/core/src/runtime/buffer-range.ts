// SPDX-License-Identifier: Apache-2.0
// A place in device memory, as copies and kernels take it.

import type { DeviceBuffer } from './device-buffer.js';

/** A range of device memory; `byteOffset` defaults to 0. */
export interface BufferRange {
  readonly buffer: DeviceBuffer;
  readonly byteOffset?: number;
}
