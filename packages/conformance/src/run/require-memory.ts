// SPDX-License-Identifier: Apache-2.0
// How much memory a case may take: the GPU's, or this machine's where ranks live in it.

import { freemem } from 'node:os';
import type { CaseWorld } from './case-world.js';
import { freeDeviceBytes } from './free-device-bytes.js';
import { collectGarbage } from './memory.js';
import { Skipped } from './skipped.js';
import type { WorldPool } from './world-pool.js';

/** The share of free memory that a case may take; staging and the host's copies need some too. */
const memoryShare = 0.8;

/** Skips a case that does not fit; shared worlds of earlier cases keep what they once had, so they go first. */
export async function requireMemory(pool: WorldPool, ranks: number, bytes: number): Promise<void> {
  if (bytes <= freeBytes(await pool.shared(ranks)) * memoryShare) return;
  await pool.dispose();
  await collectGarbage();
  const free = freeBytes(await pool.shared(ranks));
  if (bytes > free * memoryShare)
    throw new Skipped(`needs ${gibibytes(bytes)} of memory, ${gibibytes(free)} are free`);
}

/** Ranks of this process may share a GPU, so the first one's has to hold all. */
function freeBytes({ ranks: [first] }: CaseWorld): number {
  return (first && freeDeviceBytes(first)) ?? freemem();
}

function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
