// SPDX-License-Identifier: Apache-2.0
// What handles and layers see of their group.

import type { Communicator } from '@nccl-ext/core';
import type { EpGroupHandle, EpSpi, RuntimeSpi } from '@nccl-ext/core/contract';
import type { EpSettings } from '../config/ep-settings.js';
import type { EpMemoryLayout } from '../memory/layout-of.js';
import type { EpMemorySource } from '../memory/memory-source.js';

export interface GroupCore {
  readonly communicator: Communicator;
  readonly runtime: RuntimeSpi;
  readonly ep: EpSpi;
  readonly handle: EpGroupHandle;
  readonly settings: EpSettings;
  readonly layout: EpMemoryLayout;
  readonly memory: EpMemorySource | undefined;
  /** Changes of membership that this rank took part in: handles ask at every call, so it is kept here. */
  changes: number;
}
