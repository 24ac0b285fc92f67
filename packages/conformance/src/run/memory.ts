// SPDX-License-Identifier: Apache-2.0
// Measures what a program holds: resident bytes after a collection, open files, device memory.

import { existsSync, readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { backendOf } from '@nccl-ext/core/extend';
import type { CaseWorld } from './case-world.js';
import { freeDeviceBytes } from './free-device-bytes.js';

/** What is held at one moment. */
export interface Held {
  readonly residentBytes: number;
  /** Undefined where the system does not tell. */
  readonly openFiles: number | undefined;
  readonly allocatedBytes: number;
  readonly reservedBytes: number;
  /** Free on the first rank's GPU, undefined without one. Others may use it too. */
  readonly freeDeviceBytes: number | undefined;
}

/** Collects garbage, then measures. */
export async function measureHeld(world: CaseWorld): Promise<Held> {
  await collectGarbage();
  const [own] = world.ranks;
  const { allocatedBytes, reservedBytes } = own
    ? backendOf(own).runtime.memoryUsage()
    : { allocatedBytes: 0, reservedBytes: 0 };
  const openFiles = existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : undefined;
  const free = own && freeDeviceBytes(own);
  return {
    residentBytes: process.memoryUsage.rss(),
    openFiles,
    allocatedBytes,
    reservedBytes,
    freeDeviceBytes: free,
  };
}

/** Frees what nobody references in this thread, shared memory of worlds that ended included. */
export async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let i = 0; i < 3; i++) {
    collect();
    // Finalizers run between turns.
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}

/** The driver takes memory for itself in pieces of 2 MiB, now and then. */
const driverBytes = 8 * 2 ** 20;

/** What grew from `before` to `after`, as a sentence, or undefined. Only resident memory and the driver's may grow a little. */
export function growth(before: Held, after: Held, residentMebibytes = 32): string | undefined {
  const grown = (['allocatedBytes', 'reservedBytes', 'openFiles'] as const).find(
    (field) => (after[field] ?? 0) > (before[field] ?? 0),
  );
  if (grown !== undefined) return `${grown} grew from ${before[grown]} to ${after[grown]}`;
  const lost = (before.freeDeviceBytes ?? 0) - (after.freeDeviceBytes ?? 0);
  if (lost > driverBytes) return `${lost} bytes of the GPU are free no more`;
  const mebibytes = (after.residentBytes - before.residentBytes) / 2 ** 20;
  return mebibytes > residentMebibytes ? `resident memory grew by ${mebibytes.toFixed(0)} MiB` : undefined;
}
