// SPDX-License-Identifier: Apache-2.0
// Splits a communicator: the ranks of one color form a part, and each learns where the others of its part are.

import type { RankHandle } from '../contract/index.js';
import { requireObject } from '../errors/require-kind.js';
import { requireInteger } from '../mesh/require-integer.js';
import type { Topology } from '../topology/topology.js';
import type { Communicator } from './communicator.js';
import { unwrap } from './unwrap.js';

/** Which part of a split communicator a rank goes to, and where. */
export interface SplitOptions {
  /** Ranks of one color come together, 0 to 2^31 - 1; -1 takes part in the call and joins none. */
  readonly color: number;
  /** Orders the ranks of the part, -2^31 to 2^31 - 1; equal keys (default 0) keep the order of their ranks. */
  readonly key?: number;
}

/** What a rank knows of the part that it went to. */
interface Part {
  readonly handle: RankHandle;
  readonly rank: number;
  readonly topology: Topology;
}

/** As `Communicator.split`; `handle` is the parent's. */
export async function splitRank(
  parent: Communicator,
  handle: RankHandle,
  options: SplitOptions,
): Promise<Part | undefined> {
  requireObject('options', options);
  const color = requireInteger('ERR_INVALID_ARGUMENT', 'color', options.color, -1, 0x7fff_ffff);
  const key = requireInteger('ERR_INVALID_ARGUMENT', 'key', options.key ?? 0, -0x8000_0000, 0x7fff_ffff);
  const { runtime } = parent.backend;
  const part = unwrap(await runtime.splitRank(handle, color, key));
  if (part === undefined) return undefined;
  try {
    const own = new Uint8Array(4);
    new DataView(own.buffer).setUint32(0, parent.rank);
    const members = unwrap(await runtime.exchange(part.handle, 'split: ranks of the parent', own));
    const ranks = members.map((bytes) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(0));
    return { handle: part.handle, rank: part.rank, topology: parent.topology.subset(ranks) };
  } catch (error) {
    await runtime.disposeRank(part.handle);
    throw error;
  }
}
