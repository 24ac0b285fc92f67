// SPDX-License-Identifier: Apache-2.0
// The bound between GPUs: how fast the copy engines of half of them write to the other half, all pairs at the same time.

import type { DeviceBuffer, MemoryShare } from '@nccl-ext/core';
import { countText } from '../output/units.js';
import type { BenchWorld } from './bench-world.js';
import type { Ceiling } from './ceiling.js';
import { openTimed, type TimedRank } from './device-clock.js';
import type { Sides } from './sides.js';
import { timeAll } from './time-all.js';
import { uploadRandom } from './upload-random.js';

interface CopyRank extends TimedRank {
  /** On ranks that copy: from here to the memory of another GPU. */
  readonly copies?: { readonly from: DeviceBuffer; readonly to: DeviceBuffer };
}

/** Copies from one rank of each source GPU to one of the GPU that it is paired with. Collective, as all of it. */
export class PeerCopies implements Ceiling {
  readonly bytes: number;
  readonly how: string;
  readonly #executions: number;
  readonly #ranks: readonly CopyRank[];
  readonly #owned: readonly { dispose(): Promise<void> }[];

  private constructor(
    facts: { readonly bytes: number; readonly how: string; readonly executions: number },
    ranks: readonly CopyRank[],
    owned: readonly { dispose(): Promise<void> }[],
  ) {
    this.bytes = facts.bytes;
    this.how = facts.how;
    this.#executions = facts.executions;
    this.#ranks = ranks;
    this.#owned = owned;
  }

  static async open(
    world: BenchWorld,
    { gpus, sides, bytes, executions }: PeerCopiesInput,
  ): Promise<PeerCopies> {
    const pairs = pairsOf(gpus, sides);
    const owned: { dispose(): Promise<void> }[] = [];
    // Symmetric memory is shared by file descriptor, with other processes as with other ranks of this one.
    const memories = new Map<number, DeviceBuffer>();
    const shares = await world.gather<MemoryShare | null>(
      'memory of peer copies',
      world.ranks.map((communicator) => {
        if (!pairs.some(({ to }) => to === communicator.rank)) return null;
        const memory = communicator.allocate(bytes);
        memories.set(communicator.rank, memory);
        return memory.share();
      }),
    );
    const ranks = await world.run(async (communicator): Promise<CopyRank> => {
      const timed = openTimed(communicator, owned);
      const pair = pairs.find(({ from }) => from === communicator.rank);
      if (pair === undefined) return timed;
      const from = communicator.allocate(bytes, 'plain');
      const to = communicator.importMemory(shares[pair.to]!);
      owned.push(from, to);
      await uploadRandom(timed.stream, from);
      return { ...timed, copies: { from, to } };
    });
    // Exported memory outlives its imports: those of this process go first, and other processes' before the world does.
    const release = { dispose: () => releaseAll(world, [...memories.values()]) };
    const how = `peer-to-peer copies, ${countText(pairs.length, 'pair')} of GPUs at once`;
    return new PeerCopies({ bytes, how, executions }, ranks, [...owned, release]);
  }

  async copy(): Promise<number> {
    const ms = await timeAll(this.#ranks, ({ stream, copies }) => {
      if (copies === undefined) return;
      for (let i = 0; i < this.#executions; i++)
        stream.copy({ buffer: copies.to }, { buffer: copies.from }, this.bytes);
    });
    return ms / this.#executions;
  }

  async dispose(): Promise<void> {
    for (const resource of this.#owned) await resource.dispose();
  }
}

export interface PeerCopiesInput {
  /** The GPU of each rank. */
  readonly gpus: readonly string[];
  readonly sides: Sides;
  /** Of one copy. */
  readonly bytes: number;
  /** Copies of a sample, back to back. */
  readonly executions: number;
}

/** The first rank of each source GPU, and that of the destination GPU in the same place. */
export function pairsOf(
  gpus: readonly string[],
  { sources, destinations }: Sides,
): { readonly from: number; readonly to: number }[] {
  const firsts = (ranks: readonly number[]): number[] =>
    ranks.filter((rank, i) => ranks.findIndex((other) => gpus[other] === gpus[rank]) === i);
  const to = firsts(destinations);
  return firsts(sources)
    .slice(0, to.length)
    .map((rank, i) => ({ from: rank, to: to[i]! }))
    .filter((pair) => gpus[pair.from] !== gpus[pair.to]);
}

async function releaseAll(world: BenchWorld, memories: readonly DeviceBuffer[]): Promise<void> {
  const here = world.ranks.map(() => 0);
  await world.gather('end of peer copies', here);
  for (const memory of memories) await memory.dispose();
}
