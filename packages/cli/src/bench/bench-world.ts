// SPDX-License-Identifier: Apache-2.0
// The ranks that a benchmark runs on: all in this process, or one in each process of a launcher. Figures are those of all ranks either way.

import {
  type Communicator,
  type InitOptions,
  init,
  type LocalWorldOptions,
  localWorld,
} from '@nccl-ext/core';
import { backendOf } from '@nccl-ext/core/extend';

export interface BenchWorld extends Together {
  readonly size: number;
  readonly backend: string;
  /** 1, or one per rank. */
  readonly processes: number;
  /** The ranks of this process. */
  readonly ranks: readonly Communicator[];
  /** Whether this process has rank 0, which reports. */
  readonly leads: boolean;
  /** Runs `body` on the ranks of this process, concurrently; the results by rank. */
  run<T>(body: (communicator: Communicator) => Promise<T> | T): Promise<T[]>;
  /** Collective: the values of all ranks, by rank, from those of the ranks of this process. What JSON can say. */
  gather<T>(topic: string, own: readonly T[]): Promise<readonly T[]>;
  dispose(): Promise<void>;
}

/** How processes that measure together stay together. */
export interface Together {
  /** Collective: the longest of all processes' times. */
  slowest(ms: number): Promise<number>;
  /** Collective: what the process of rank 0 passed. */
  agreed<T>(value: T): Promise<T>;
}

/** One process alone. */
export const alone: Together = {
  slowest: async (ms) => ms,
  agreed: async (value) => value,
};

/** All ranks in this process, each driven by a thread of the backend. */
export async function openLocal(options: LocalWorldOptions): Promise<BenchWorld> {
  const world = await localWorld(options);
  return {
    ...alone,
    size: world.size,
    backend: world.backend.name,
    processes: 1,
    ranks: world.ranks,
    leads: true,
    run: (body) => world.run(body),
    gather: async (_topic, own) => own,
    dispose: () => world.dispose(),
  };
}

/** The rank of this process, among those that the launcher started. */
export async function openLaunched(options: InitOptions): Promise<BenchWorld> {
  return worldOfRank(await init(options));
}

/** A world of which this process has one rank. */
export function worldOfRank(communicator: Communicator): BenchWorld {
  const gather = async <T>(topic: string, own: readonly T[]): Promise<readonly T[]> => {
    const payload = new TextEncoder().encode(JSON.stringify(own));
    const payloads = await communicator.exchange(`bench ${topic}`, payload);
    return payloads.flatMap((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as T[]);
  };
  return {
    size: communicator.size,
    backend: backendOf(communicator).info.name,
    processes: communicator.size,
    ranks: [communicator],
    leads: communicator.rank === 0,
    run: async (body) => [await body(communicator)],
    gather,
    slowest: async (ms) => Math.max(...(await gather('time', [ms]))),
    agreed: async <T>(value: T) => (await gather('agreed', [value]))[0] as T,
    dispose: () => communicator.dispose(),
  };
}
