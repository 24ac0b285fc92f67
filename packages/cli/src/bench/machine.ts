// SPDX-License-Identifier: Apache-2.0
// The machine that a figure belongs to.

import { availableParallelism, cpus, release, type } from 'node:os';

export interface MachineFacts {
  readonly cpu: string;
  readonly cores: number;
  readonly node: string;
  readonly system: string;
  /** ISO 8601, day only. */
  readonly date: string;
}

export function machineFacts(now: Date = new Date()): MachineFacts {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    node: process.versions.node,
    system: `${type()} ${release()}`,
    date: now.toISOString().slice(0, 10),
  };
}
